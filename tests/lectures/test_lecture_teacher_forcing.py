import torch

from regard.lectures.translator import END, PAIRS, START, Words


def test_the_target_goes_in_shifted_behind_a_start_token(played):
    numbers = played("teacher-forcing").numbers
    assert numbers["source"] == ["You", "are", "welcome"]
    assert numbers["inputs"] == [START, "De", "nada"]
    assert numbers["wanted"] == ["De", "nada", END]


def test_both_ways_say_the_same_words(played):
    numbers = played("teacher-forcing").numbers
    assert numbers["foretold"] == numbers["said"] == ["De", "nada", END]


def test_both_ways_have_the_same_logits(played):
    numbers = played("teacher-forcing").numbers
    assert numbers["largest_difference"] < 1e-5
    torch.testing.assert_close(
        torch.tensor(numbers["logits_all_at_once"]),
        torch.tensor(numbers["logits_one_by_one"]),
        atol=1e-5,
        rtol=0,
    )
    assert len(numbers["logits_all_at_once"][0]) == len(numbers["vocabulary"])


def test_the_padding_to_mask_is_that_of_the_source(played):
    numbers = played("teacher-forcing").numbers
    assert numbers["padding"]["masked"] < 1e-5
    assert numbers["as_written"]["source_padding_not_masked"] > 0.01


def test_the_decoder_sees_no_later_word(played):
    recalling, looking = played("teacher-forcing").looks
    assert recalling.mask[0].tolist() == torch.ones(3, 3).tril().bool().tolist()
    assert (recalling.weights.triu(1) == 0).all()
    assert looking.kind == "cross" and looking.weights.shape == (2, 3, 3)


def test_words_become_ids_with_padding_and_come_back():
    words = Words([spanish for _, spanish in PAIRS])
    ids, lengths = words.encode([["De", "nada"], ["Gracias"]])
    assert lengths.tolist() == [2, 1]
    assert words.decode(ids[1]) == ["Gracias", "<pad>"]
