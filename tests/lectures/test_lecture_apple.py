import math

import pytest


def test_apple_reads_the_lectures_weighted_sum(played, printed):
    numbers = played("apple").numbers
    assert numbers["weights"] == [0.1, 0.1, 0.5, 0.1, 0.2]
    assert numbers["v_apple"] == {
        "she": 0.1,
        "is": 0.1,
        "eating": 0.5,
        "a": 0.1,
        "green": 0.2,
        "apple": 0,
    }
    assert "v_apple = 0.1 she + 0.1 is + 0.5 eating + 0.1 a + 0.2 green" in printed("apple")


def test_apple_looks_at_strictly_earlier_words_only(played):
    lesson = played("apple")
    assert lesson.numbers["visible"] == [True] * 5 + [False]
    (look,) = lesson.looks
    assert look.mask.tolist() == [[[True] * 5 + [False]]]


def test_scores_that_are_logarithms_have_these_weights_as_softmax(played):
    numbers = played("apple").numbers
    assert numbers["scores"] == pytest.approx([math.log(w) for w in numbers["weights"]], abs=1e-9)
    assert numbers["softmax_of_scores"] == pytest.approx(numbers["weights"], abs=1e-9)


def test_the_first_word_may_look_nowhere_and_reads_zeros(played):
    assert played("apple").numbers["v_she"] == [0] * 6
