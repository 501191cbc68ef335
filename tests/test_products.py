"""Products by oneDNN, against torch's own."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from regard import products

available = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
needs_onednn = pytest.mark.skipif(not available, reason="this torch comes without oneDNN")


@pytest.fixture
def onednn(monkeypatch):
    """As on a machine that prefers oneDNN, for products of any size; counts its calls."""
    calls = []
    multiply = products._multiply
    monkeypatch.setattr(products, "PREFERS_ONEDNN", True)
    monkeypatch.setattr(products, "MIN_OPERATIONS", 1)
    monkeypatch.setattr(products, "_multiply", lambda *a: (calls.append(a), multiply(*a))[1])
    return calls


@needs_onednn
@pytest.mark.parametrize("leading", [(7,), (2, 7), (0,), (2, 0)])
@pytest.mark.parametrize("sizes", [(5, 11), (11, 5)])
@pytest.mark.parametrize("biased", [True, False])
def test_values_and_gradients_are_those_of_torch(onednn, leading, sizes, biased):
    inside, outside = sizes
    inputs = torch.randn(*leading, inside, requires_grad=True)
    weight = torch.randn(outside, inside, requires_grad=True)
    bias = torch.randn(outside, requires_grad=True) if biased else None
    learned = [x for x in (inputs, weight, bias) if x is not None]
    found, expected = products.linear(inputs, weight, bias), F.linear(inputs, weight, bias)
    assert bool(onednn) == bool(inputs.numel())
    assert_close(found, expected)
    slopes = torch.randn_like(expected)
    mine, theirs = (torch.autograd.grad(each, learned, slopes) for each in (found, expected))
    for one, other in zip(mine, theirs, strict=True):
        assert_close(one, other)


@needs_onednn
def test_slices_and_turned_matrices_are_read_right_and_not_by_a_slow_kernel(onednn):
    table, rows = torch.randn(9, 40), torch.randn(13, 30)
    for weight in (table[:, 3:20], table[:, :17], torch.randn(17, 9).T, table[::2, ::2][:, :17]):
        inputs = rows[:, 5:22]
        assert_close(products.linear(inputs, weight), F.linear(inputs, weight))
        total = torch.randn(13, 50)[:, : len(weight)]
        found = products.add_linear(total, inputs, weight)
        assert_close(found, total + F.linear(inputs, weight))
        dense = products._densify(weight)
        assert dense.is_contiguous() or dense.T.is_contiguous()


@needs_onednn
def test_a_gradient_has_a_gradient(onednn):
    inputs = torch.randn(3, 5, requires_grad=True)
    weight = torch.randn(7, 5, requires_grad=True)

    def second(linear):
        slope = torch.autograd.grad(linear(inputs, weight).tanh().sum(), inputs, create_graph=True)
        return torch.autograd.grad(slope[0].square().sum(), [inputs, weight])

    for one, other in zip(second(products.linear), second(F.linear), strict=True):
        assert_close(one, other)


@needs_onednn
@pytest.mark.filterwarnings("ignore:There is a performance drop")  # vmap goes sample by sample
def test_per_sample_gradients_work_as_with_torchs_layer(onednn):
    layer, inputs = products.Linear(5, 3), torch.randn(4, 2, 5)

    def loss(weight, sample, linear):
        return linear(sample, weight).square().sum()

    found, expected = (
        torch.func.vmap(torch.func.grad(loss), (None, 0, None))(layer.weight, inputs, linear)
        for linear in (products.linear, F.linear)
    )
    assert_close(found, expected)


@needs_onednn
def test_what_suits_only_torch_goes_torchs_way(onednn):
    double, single = nn.Linear(5, 3).double(), nn.Linear(5, 3)
    products.linear(torch.randn(2, 5, dtype=torch.double), double.weight, double.bias)
    products.linear(torch.randn(5), single.weight)
    with torch.autocast("cpu", torch.bfloat16):
        half = products.linear(torch.randn(2, 5), single.weight)
    assert half.dtype == torch.bfloat16
    assert not onednn
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        products.linear(torch.randn(2, 4), single.weight)


def test_the_layer_is_torchs_in_name_and_number():
    torch.manual_seed(1)
    ours = products.Linear(5, 3)
    torch.manual_seed(1)
    theirs = nn.Linear(5, 3)
    theirs.load_state_dict(ours.state_dict())
    inputs = torch.randn(2, 5)
    assert_close(ours(inputs), theirs(inputs))
