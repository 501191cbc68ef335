"""Learning rates, against their formulas worked by hand."""

import math

import pytest

from regard.training.schedules import ScheduleConfig, count_cuts, factor


def rate(step: int, epoch: float = 0.0, history: tuple[float, ...] = (), **settings) -> float:
    return factor(ScheduleConfig(**settings), 100, step, epoch, history)


def test_the_warm_up_rises_in_a_line():
    assert [rate(s, warmup=4) for s in range(6)] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_the_inverse_square_root_peaks_at_the_end_of_the_warm_up():
    assert rate(3, kind="inverse-square-root", warmup=4) == 1.0
    assert rate(15, kind="inverse-square-root", warmup=4) == pytest.approx(0.5)


def test_the_cosine_is_halfway_down_in_the_middle_and_ends_at_the_floor():
    assert rate(50, kind="cosine", floor=0.2) == pytest.approx(0.6)
    assert rate(100, kind="cosine", floor=0.2) == pytest.approx(0.2)


def test_zaremba_halves_the_rate_each_epoch_after_the_fourth():
    rates = [rate(0, epoch=e, kind="decay", factor=0.5, after=4) for e in range(7)]
    assert rates == [1, 1, 1, 1, 0.5, 0.25, 0.125]


def test_a_plateau_cuts_the_rate_when_nothing_was_gained():
    assert count_cuts([3.0, 2.0, 2.1, 2.2, 1.9, 2.0, 2.0], patience=2) == 2
    falling = {"kind": "plateau", "factor": 0.1, "after": 2}
    assert rate(9, history=(3.0, 2.0, 2.1, 2.2), **falling) == pytest.approx(0.1)


def test_one_cycle_goes_up_to_its_peak_and_down_to_nothing():
    rates = [rate(s, kind="one-cycle", peak=0.25) for s in range(100)]
    assert max(rates) == pytest.approx(1.0, abs=1e-3)
    assert rates.index(max(rates)) in (24, 25)
    assert rates[-1] == pytest.approx(0.0, abs=1e-6)
    assert math.isclose(rate(61, kind="one-cycle", peak=0.25), 0.5, abs_tol=0.02)


def test_a_factor_above_one_is_refused():
    with pytest.raises(ValueError, match=r"factor \(1.5\)"):
        ScheduleConfig(factor=1.5)
