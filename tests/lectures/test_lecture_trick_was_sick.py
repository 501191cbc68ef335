import pytest
import torch

from regard.lectures import trick_was_sick


def test_the_sentence_is_positive_from_the_skateboarding_sense_alone(played, printed):
    numbers = played("trick-was-sick").numbers
    assert numbers["sentiment"] == [1, 0, 0, 0]
    assert numbers["answer"] == "1000"
    assert numbers["contributions"] == [[0] * 4, [0] * 4, [0] * 4, [1, 0, 0, 0]]
    assert "sentiment 1000" in printed("trick-was-sick")
    assert played("trick-was-sick").steps[-1].lines == ("sentiment 1000",)


def test_the_query_of_a_word_is_what_the_others_say(played):
    numbers = played("trick-was-sick").numbers
    assert numbers["words"] == ["that", "trick", "was", "sick"]
    expected = [[0, 0, 2 / 3, 1 / 3], [0, 0, 1 / 2, 1 / 2], [0, 0, 2 / 3, 1 / 3], [0, 0, 1, 0]]
    for query, by_hand in zip(numbers["queries"], expected, strict=True):
        assert query == pytest.approx(by_hand, abs=1e-12)


def test_sick_gives_all_weight_to_its_first_sense(played):
    weights = dict(
        zip(
            ("that", "trick", "was", "sick"),
            played("trick-was-sick").numbers["weights"],
            strict=True,
        )
    )
    assert weights["sick"] == [1, 0]
    assert weights["that"] == weights["was"] == [0, 0]


def test_a_word_weighs_only_its_own_senses(played):
    (look,) = played("trick-was-sick").looks
    assert look.kind == "senses" and look.heads == ("sense 0", "sense 1")
    for sense in look.weights:
        assert torch.equal(sense, sense.diag().diag())


def test_keys_are_topics_and_values_are_sentiment(played):
    numbers = played("trick-was-sick").numbers
    assert numbers["keys"][3] == [[0, 0, 1, 0], [0, 0, 0, 1]]
    assert numbers["values"][3] == [[1, 0, 0, 0], [0, 1, 0, 0]]
    assert numbers["values"][1] == [[0] * 4, [0] * 4]


def test_formula_5_agrees_for_sick_and_for_no_one_who_hears_two(played):
    written = played("trick-was-sick").numbers["as_written"]
    assert written["formula_5"]["sick"] == [1, 0]
    assert written["formula_5"]["trick"] == [0.5, 0.5]
    assert written["formula_5"]["that"] == [1.5, 0.5]  # 1 + 1/2 and 0 + 1/2: no longer shares
    assert len(written["Q"]) == 3


def test_the_words_whose_formula_5_is_zero_by_zero_are_found_and_not_listed(monkeypatch):
    vectors = trick_was_sick.VECTORS.clone()
    vectors[2, 0] = torch.tensor([0.0, 0.0, 0.0, 1.0])  # “was” speaks of health
    monkeypatch.setattr(trick_was_sick, "VECTORS", vectors)
    lesson = trick_was_sick.lesson()
    assert lesson.numbers["as_written"]["formula_5_zero_by_zero"] == ["that"]
    # Now trick [1 0], was [0 1] and sick [½ ½] speak to “that”: 1½ and 1½, 3 in all.
    assert "gives “that” the weights [1.5 1.5], 3 in all" in lesson.slip
