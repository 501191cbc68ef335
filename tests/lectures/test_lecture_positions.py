from math import cos, sin

import pytest


def test_four_dimensions_are_two_waves_of_sine_and_cosine(played):
    for pos, row in enumerate(played("positions").numbers["encodings"]):
        by_hand = [sin(pos), cos(pos), sin(pos / 100), cos(pos / 100)]
        assert row == pytest.approx(by_hand, abs=1e-6)


def test_the_position_is_added_to_the_word(played):
    expected = [1 + sin(1), 2 + cos(1), 3 + sin(0.01), 4 + cos(0.01)]
    assert played("positions").numbers["word_at_position_1"] == pytest.approx(expected, abs=1e-6)


def test_the_general_formula_of_the_lecture_turns_its_cosines_at_other_speeds(played):
    for pos, row in enumerate(played("positions").numbers["as_written"]["encodings"]):
        by_hand = [sin(pos), cos(pos / 10), sin(pos / 100), cos(pos / 1000)]
        assert row == pytest.approx(by_hand, abs=1e-6)


def test_the_counter_counts(played):
    binary = played("positions").numbers["binary"]
    assert binary[:3] == ["0000", "0001", "0010"] and binary[7] == "0111"


def test_every_wave_is_drawn(played):
    (curves,) = played("positions").curves
    assert list(curves.series) == ["sin pos", "cos pos", "sin(pos/100)", "cos(pos/100)"]
    assert curves.series["cos(pos/100)"][20] == pytest.approx(cos(0.2), abs=1e-6)
