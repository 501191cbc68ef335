def test_each_of_four_words_is_linked_to_each_of_two(played):
    numbers = played("alignment").numbers
    assert numbers["english"] == ["The", "poor", "don't", "have", "any", "money"]
    assert numbers["french"] == ["Les", "pauvres", "sont", "démunis"]
    assert numbers["links"] == [
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 1],
        [0, 0, 1, 1],
        [0, 0, 1, 1],
        [0, 0, 1, 1],
    ]
    assert numbers["pairs"][:3] == [[0, 0], [1, 1], [2, 2]] and len(numbers["pairs"]) == 10


def test_a_word_shares_its_attention_among_those_it_is_linked_to(played):
    numbers = played("alignment").numbers
    assert numbers["french_to_english"] == [
        [1, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0],
        [0, 0, 1 / 4, 1 / 4, 1 / 4, 1 / 4],
        [0, 0, 1 / 4, 1 / 4, 1 / 4, 1 / 4],
    ]
    assert numbers["english_to_french"][5] == [0, 0, 1 / 2, 1 / 2]


def test_the_map_is_drawn_both_ways(played):
    there, back = played("alignment").looks
    assert there.kind == back.kind == "cross"
    assert there.weights.shape == (1, 4, 6) and back.weights.shape == (1, 6, 4)
