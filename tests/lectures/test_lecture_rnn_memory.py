import pytest


@pytest.mark.parametrize("what", ["share_left", "gradient"])
def test_what_is_left_of_a_word_and_of_its_gradient_are_powers_of_the_norm(played, what):
    for norm in ("0.9", "1", "1.1"):
        expected = [float(norm) ** n for n in range(101)]
        assert played("rnn-memory").numbers[what][norm] == pytest.approx(expected, rel=1e-6)


def test_the_network_is_the_sum_over_its_words(played):
    assert max(played("rnn-memory").numbers["unrolled_difference"].values()) < 1e-12


def test_under_tanh_nothing_explodes_and_nothing_stays(played):
    left = played("rnn-memory").numbers["share_left_with_tanh"]
    assert left["0.9"][100] < 1e-5
    assert left["1"][100] < left["1"][50] < left["1"][10] < 0.2
    # above 1 the state settles where tanh(1.1 h) = h, near 0.5029 in both dimensions
    assert left["1.1"][100] == pytest.approx(0.5029 * 2**0.5 / 5, abs=1e-3)


def test_the_curves_are_logarithmic_and_named_by_the_norm(played):
    linear, pressed = played("rnn-memory").curves
    assert linear.log and pressed.log
    assert list(linear.series) == ["‖V‖ = 0.9", "‖V‖ = 1", "‖V‖ = 1.1"]
