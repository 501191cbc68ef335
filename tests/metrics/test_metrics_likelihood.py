"""Loss, perplexity and bits are one number under three names."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.metrics import likelihood_scores


def by_name(loss_sum: float, count: int):
    return {score.name: score for score in likelihood_scores(loss_sum, count)}


def test_a_fair_die_has_perplexity_six():
    scores = by_name(5 * math.log(6), 5)
    assert list(scores) == ["loss", "perplexity", "bits"]
    assert scores["loss"].value == pytest.approx(1.791759469)  # ln 6
    assert scores["perplexity"].value == pytest.approx(6.0)
    assert scores["bits"].value == pytest.approx(2.584962501)  # log2 6
    assert {score.signature for score in scores.values()} == {"count:5"}


def test_a_fair_coin_is_worth_one_bit():
    assert by_name(7 * 0.6931471805599453, 7)["bits"].value == pytest.approx(1.0)


def test_the_loss_is_torchs_mean_cross_entropy():
    torch.manual_seed(0)
    logits, targets = torch.randn(7, 11), torch.randint(11, (7,))
    summed = torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
    mean = torch.nn.functional.cross_entropy(logits, targets)
    assert by_name(summed.item(), 7)["loss"].value == pytest.approx(mean.item(), abs=1e-6)


@given(st.floats(-50, 50), st.integers(1, 10**9))
def test_the_three_follow_from_each_other(loss, count):
    scores = by_name(loss * count, count)
    assert scores["loss"].value == pytest.approx(loss)
    assert math.log(scores["perplexity"].value) == pytest.approx(loss, abs=1e-9)
    assert scores["bits"].value * math.log(2) == pytest.approx(loss, abs=1e-9)


def test_a_perplexity_too_large_for_a_float_is_capped_and_says_so():
    scores = by_name(1e6, 1)
    assert scores["perplexity"].value == math.exp(700)
    assert scores["perplexity"].signature == "count:1|capped:exp(700)"
    assert scores["loss"].value == 1e6
    assert scores["loss"].signature == "count:1"
    assert by_name(700.0, 1)["perplexity"].signature == "count:1"


@pytest.mark.parametrize("count", [0, -3])
def test_a_mean_over_nothing_is_refused(count):
    with pytest.raises(ValueError, match=rf"count \({count}\) must be at least 1"):
        likelihood_scores(1.0, count)


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_no_number_is_refused(loss):
    with pytest.raises(ValueError, match=rf"loss_sum \({loss}\) must be finite"):
        likelihood_scores(loss, 3)
