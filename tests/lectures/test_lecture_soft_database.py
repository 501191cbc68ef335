import pytest


def test_the_query_time_returns_arrow_exactly(played, printed):
    numbers = played("soft-database").numbers
    assert numbers["keys"] == ["arrow", "flies", "like", "an", "time"]
    assert numbers["values"] == ["time", "flies", "like", "an", "arrow"]
    assert numbers["exact"] == {
        "scores": [0, 0, 0, 0, 1],
        "weights": [0, 0, 0, 0, 1],
        "answer": "arrow",
    }
    assert "time → arrow" in printed("soft-database")


def test_softly_related_words_have_a_share_and_arrow_most(played):
    for soft in played("soft-database").numbers["soft"]:
        assert soft["answer"] == "arrow"
        assert sum(soft["weights"]) == pytest.approx(1, abs=1e-9)
        arrow, flies, like, _, time = soft["scores"]
        assert time > flies > arrow > like


def test_the_stronger_the_comparison_the_nearer_to_the_database(played):
    on_time = [soft["weights"][4] for soft in played("soft-database").numbers["soft"]]
    assert on_time == sorted(on_time)
    assert on_time[-1] > 0.99


def test_scores_are_cosines_times_the_strength(played):
    # time (1, ½, 0, 0) and flies (1, 1, 0, 0): 1.5 / √(1.25 · 2)
    weakest = played("soft-database").numbers["soft"][0]
    assert weakest["strength"] == 1
    assert weakest["scores"][1] == pytest.approx(1.5 / 2.5**0.5, abs=1e-6)
    assert weakest["scores"][2:] == pytest.approx([0, 0, 1], abs=1e-6)


def test_between_keys_and_values_the_query_has_no_say(played):
    written = played("soft-database").numbers["as_written"]
    assert written["scores"] == [0, 1, 1, 1, 0]
    assert written["weights"] == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3, 0], abs=1e-12)
