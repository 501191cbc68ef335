import pytest
import torch
from torch.testing import assert_close

from regard.layers import Dropout


@pytest.mark.parametrize("rate", [0.1, 0.9])
def test_the_share_that_is_lost_is_the_rate_and_the_mean_is_kept(rate):
    count = 1_000_003
    dropped = Dropout(rate)(torch.ones(count))
    spread = (rate * (1 - rate) / count) ** 0.5  # of a mean of so many coins
    assert abs((dropped == 0).float().mean() - rate) < 5 * spread
    assert abs(dropped.mean() - 1) < 5 * spread / (1 - rate)
    assert len(dropped.unique()) == 2
    assert_close(dropped.max(), torch.tensor(1 / (1 - rate)), atol=0, rtol=2e-4)


def test_the_dice_know_nothing_of_each_other():
    # Four numbers share one draw of 64 bits: each place, and each pair of places, must be fair.
    lost = (Dropout(0.25)(torch.ones(500_000, 4)) == 0).float()
    assert_close(lost.mean(dim=0), torch.full((4,), 0.25), atol=0.004, rtol=0)
    together = lost.T @ lost / len(lost)
    apart = together[~torch.eye(4, dtype=torch.bool)]
    assert_close(apart, torch.full((12,), 0.0625), atol=0.002, rtol=0)
    rows = (lost[1:] * lost[:-1]).mean(dim=0)
    assert_close(rows, torch.full((4,), 0.0625), atol=0.002, rtol=0)


def test_a_seed_decides_what_is_lost():
    inputs = torch.randn(3, 5, 7)
    torch.manual_seed(1)
    first = Dropout(0.5)(inputs)
    torch.manual_seed(1)
    assert torch.equal(Dropout(0.5)(inputs), first)
    assert not torch.equal(Dropout(0.5)(inputs), first)


def test_what_is_lost_has_no_gradient_and_the_rest_makes_up_for_it():
    inputs = torch.randn(3, 5, 7, dtype=torch.float64, requires_grad=True)
    outputs = Dropout(0.5)(inputs)
    (gradient,) = torch.autograd.grad(outputs.sum(), inputs)
    assert torch.equal(gradient, torch.where(outputs == 0, 0.0, 2.0).double())
    assert_close(outputs, inputs * gradient)


def test_in_evaluation_and_at_rate_zero_nothing_happens():
    inputs = torch.randn(3, 5)
    assert Dropout(0.5).eval()(inputs) is inputs
    assert Dropout(0.0)(inputs) is inputs


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_every_precision_is_kept(dtype):
    outputs = Dropout(0.5)(torch.ones(1000, dtype=dtype))
    assert outputs.dtype == dtype
    assert set(outputs.tolist()) == {0.0, 2.0}


@pytest.mark.parametrize("shape", [(), (3, 0, 5), (5, 7, 11)])
def test_any_shape_will_do(shape):
    assert Dropout(0.5)(torch.randn(shape)).shape == shape


def test_numbers_that_do_not_lie_in_a_row_will_do_too():
    inputs = torch.randn(7, 1009).T
    outputs = Dropout(0.5)(inputs)
    assert_close(outputs, torch.where(outputs == 0, 0.0, 2 * inputs))
    assert 0.4 < (outputs == 0).float().mean() < 0.6


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_rates_that_cannot_be_are_refused(rate):
    with pytest.raises(ValueError, match=rf"rate \({rate}\) must be at least 0 and below 1"):
        Dropout(rate)
