from math import exp

import pytest


def test_tired_it_is_the_animal_and_wide_it_is_the_street(played):
    numbers = played("coreference").numbers
    assert numbers["tired"]["looks_most_at"] == {"what it is": "animal", "how it is": "tired"}
    assert numbers["wide"]["looks_most_at"] == {"what it is": "street", "how it is": "wide"}


def test_the_weights_follow_from_the_stated_features(played):
    # Two features shared with the animal score 6, one with the street 3, nine other words 0.
    total = exp(6) + exp(3) + 9
    what, how = played("coreference").numbers["tired"]["weights"]
    words = played("coreference").numbers["tired"]["words"]
    assert what[words.index("animal")] == pytest.approx(exp(6) / total, abs=1e-9)
    assert what[words.index("street")] == pytest.approx(exp(3) / total, abs=1e-9)
    assert how[words.index("tired")] == pytest.approx(exp(3) / (exp(3) + 10), abs=1e-9)


def test_it_is_said_that_nothing_was_trained(played, printed):
    assert "set by hand, not trained" in printed("coreference")
    assert played("coreference").numbers["set_by_hand"] is True


def test_both_heads_are_drawn_for_both_sentences(played):
    tired, wide = played("coreference").looks
    assert tired.heads == wide.heads == ("what it is", "how it is")
    assert tired.weights.shape == (2, 1, 11)
    assert [label.text for label in wide.keys][-1] == "wide"
