import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from regard.layers import FeedForward
from regard.layers.feedforward import ACTIVATIONS

TORCH = {
    "relu": nn.ReLU(),
    "gelu": nn.GELU(),
    "gelu-tanh": nn.GELU(approximate="tanh"),
}


@pytest.mark.parametrize("activation", TORCH)
def test_it_is_two_linear_maps_with_an_activation_between(activation):
    ours = FeedForward(5, 7, activation)
    theirs = nn.Sequential(ours.expand, TORCH[activation], ours.contract)
    inputs = torch.randn(3, 11, 5)
    assert_close(ours(inputs), theirs(inputs))


def test_the_exact_gelu_weighs_a_number_by_the_share_of_numbers_below_it():
    # Φ(1) = .841345 and Φ(2) = .977250, from any table of the normal distribution.
    values = ACTIVATIONS["gelu"](torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0]))
    expected = torch.tensor([-2 * 0.022750, -0.158655, 0.0, 0.841345, 2 * 0.977250])
    assert_close(values, expected, atol=1e-5, rtol=0)


def test_the_tanh_gelu_is_its_formula():
    for x in (-3.0, -0.5, 0.7, 2.0):
        expected = x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        assert ACTIVATIONS["gelu-tanh"](torch.tensor(x)).item() == pytest.approx(expected, abs=1e-6)


def test_the_two_gelus_differ_by_at_most_half_a_thousandth():
    x = torch.linspace(-6, 6, 10_001)
    gap = (ACTIVATIONS["gelu"](x) - ACTIVATIONS["gelu-tanh"](x)).abs().max()
    assert 4e-4 < gap < 5e-4


def test_dropout_acts_on_the_hidden_layer():
    ours = FeedForward(5, 1009, dropout=0.5)
    inputs = torch.randn(1, 5)
    torch.manual_seed(1)
    result = ours(inputs)
    torch.manual_seed(1)
    hidden = ours.dropout(F.relu(ours.expand(inputs)))
    assert_close(result, ours.contract(hidden))
    assert not torch.allclose(result, ours.eval()(inputs))


def test_an_unknown_activation_is_refused():
    message = r"activation \('swish'\) must be one of relu, gelu, gelu-tanh"
    with pytest.raises(ValueError, match=message):
        FeedForward(5, 7, "swish")
