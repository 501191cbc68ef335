"""Looking from outside: what is recorded, and that nothing is touched."""

import gc
import math
import weakref

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.attention import (
    Attention,
    Causal,
    Dot,
    MultiHead,
    Padding,
    ScaledDot,
    attentions,
    edit,
    watch,
    zero,
)
from regard.attention.recording import active_sessions


class Layer(nn.Module):
    def __init__(self, size=10):
        super().__init__()
        self.attention = MultiHead(size, 2)
        self.norm = nn.LayerNorm(size)

    def forward(self, x, mask=None):
        return self.norm(x + self.attention(x, mask=mask))


class Model(nn.Module):
    """Two layers of heads and one attention that pools, as models are built."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer(), Layer()])
        self.pool = Attention(Dot())

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return self.pool(x.mean(dim=1, keepdim=True), x, x).context


def untouched(model):
    """Nobody watches: a call is met by no session, and torch's functions by no mode."""
    modes = torch.overrides._len_torch_function_stack()
    hooks = [hook for part in model.modules() for hook in part._forward_hooks]
    return not active_sessions() and not modes and not hooks


def test_each_attention_is_known_by_its_path():
    assert list(attentions(Model())) == ["layers.0.attention", "layers.1.attention", "pool"]


def test_a_model_that_is_an_attention_is_called_so():
    assert list(attentions(Attention(Dot()))) == ["attention"]
    assert list(attentions(MultiHead(10, 2))) == ["attention"]


def test_only_inside_a_multi_head_is_an_attention_known_by_its_parent():
    model = nn.Module()
    model.pool = nn.Module()
    model.pool.attention = Attention(Dot())
    model.attention = MultiHead(10, 2)
    assert list(attentions(model)) == ["pool.attention", "attention"]


def test_every_call_is_kept_in_its_order():
    model = Model()
    with watch(model) as seen:
        for length in (3, 7, 5):
            model(torch.randn(2, length, 10))
    assert {path: len(calls) for path, calls in seen.items()} == {
        "layers.0.attention": 3,
        "layers.1.attention": 3,
        "pool": 3,
    }
    shapes = [read.weights.shape for read in seen["layers.1.attention"]]
    assert shapes == [(2, 2, n, n) for n in (3, 7, 5)]
    assert [read.weights.shape for read in seen["pool"]] == [(2, 1, n) for n in (3, 7, 5)]


def test_an_attention_that_was_not_called_was_not_seen():
    model = Model()
    with watch(model) as seen:
        model.layers[0](torch.randn(2, 3, 10))
    assert seen["layers.1.attention"] == seen["pool"] == []


@pytest.mark.parametrize("gradients", [False, True])
def test_nothing_remains_after_the_with(gradients):
    model = Model()
    with watch(model, gradients=gradients):
        assert not untouched(model)
        model(torch.randn(2, 3, 10))
    assert untouched(model)


@pytest.mark.parametrize("gradients", [False, True])
def test_nothing_remains_after_an_exception(gradients):
    model = Model()
    with pytest.raises(ValueError, match="queries"), watch(model, gradients=gradients):
        model(torch.randn(2, 3, 11))
    with pytest.raises(KeyError), watch(model, gradients=gradients):
        raise KeyError
    assert untouched(model)


def test_what_was_read_lives_no_longer_than_the_record():
    model = Model()
    with watch(model) as seen:
        model(torch.randn(2, 3, 10))
    reference = weakref.ref(seen["pool"][0].comparison.queries)
    del seen
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize("mask", [None, Causal(), Padding(torch.tensor([7, 3]))], ids=str)
def test_watching_changes_no_bit(mask):
    model, x = Model(), torch.randn(2, 7, 10)
    alone = model(x, mask)
    with watch(model) as seen:
        watched = model(x, mask)
        for calls in seen.values():
            calls[-1].weights.sum()
    assert torch.equal(watched, alone)
    assert torch.equal(model(x, mask), alone)


def test_watching_for_gradients_changes_only_the_last_digits():
    model, x = Model(), torch.randn(2, 7, 10)
    alone = model(x, Causal())
    with watch(model, gradients=True):
        assert_close(model(x, Causal()), alone, atol=1e-5, rtol=1e-5)


def test_the_gradient_of_the_weights_is_that_of_the_formula():
    attention = Attention(ScaledDot())
    queries, keys, values = (torch.randn(2, n, 5, dtype=torch.float64) for n in (3, 7, 7))
    queries.requires_grad_()
    upstream = torch.randn(2, 3, 5, dtype=torch.float64)
    with watch(attention, gradients=True) as seen:
        (attention(queries, keys, values).context * upstream).sum().backward()
    weights = seen["attention"][0].weights
    # context = weights · values, so ∂loss/∂weights = upstream · valuesᵀ
    assert_close(weights.grad, upstream @ values.mT)
    expected = (queries.detach() @ keys.mT / math.sqrt(5)).softmax(dim=-1)
    assert_close(weights.detach(), expected)


def test_every_layers_weights_have_their_gradient():
    model, x = Model().double(), torch.randn(2, 7, 10, dtype=torch.float64)
    with watch(model, gradients=True) as seen:
        model(x).square().sum().backward()
    first = seen["layers.0.attention"][0].weights
    # A finite difference at one weight of the first layer, pushed through everything above it.
    epsilon, losses = 1e-5, []
    for nudge in (-epsilon, epsilon):
        pushed = first.detach().clone()
        pushed[1, 0, 3, 5] += nudge
        with edit(model, {"layers.0.attention": lambda w, m, c, pushed=pushed: pushed}):
            losses.append(model(x).square().sum().item())
    slope = (losses[1] - losses[0]) / (2 * epsilon)
    assert float(first.grad[1, 0, 3, 5]) == pytest.approx(slope, rel=1e-5)
    assert all(calls[0].weights.grad is not None for calls in seen.values())


def test_no_gradient_is_kept_where_none_flows():
    model = Model()
    with torch.no_grad(), watch(model, gradients=True) as seen:
        model(torch.randn(2, 3, 10))
    assert not seen["pool"][0].weights.requires_grad


def test_two_may_watch_at_once():
    model, x = Model(), torch.randn(2, 7, 10)
    with watch(model) as outer:
        model(x)
        with watch(model.layers[1]) as inner:
            model(x)
        model(x)
    assert len(outer["layers.1.attention"]) == 3
    assert len(inner["attention"]) == 1
    assert inner["attention"][0] is outer["layers.1.attention"][1]
    assert untouched(model)


def test_two_may_watch_for_gradients_at_once():
    model, x = Model(), torch.randn(2, 7, 10)
    with watch(model, gradients=True) as outer:
        with watch(model, gradients=True) as inner:
            model(x).sum().backward()
        assert not untouched(model)
        model(x)
    assert inner["pool"][0].weights.grad is not None
    assert outer["pool"][0] is inner["pool"][0]
    assert untouched(model)


@pytest.mark.parametrize("watching_outside", [True, False])
def test_what_an_edit_left_is_what_is_seen_and_has_a_gradient(watching_outside):
    model, x = Model(), torch.randn(2, 7, 10)
    ways = [
        lambda: watch(model, gradients=True),
        lambda: edit(model, {"layers.0.attention": zero(heads=1)}),
    ]
    first, second = ways if watching_outside else ways[::-1]
    with first() as one, second() as other:
        seen = one if watching_outside else other
        model(x).square().sum().backward()
    weights = seen["layers.0.attention"][0].weights
    assert (weights[:, 1] == 0).all()
    assert weights.grad[:, 0].abs().sum() > 0


def test_a_module_in_two_places_is_known_by_both_paths():
    model = nn.Module()
    model.one = Attention(Dot())
    model.other = model.one
    with watch(model) as seen:
        x = torch.randn(1, 3, 5)
        model.one(x, x, x)
        model.other(x, x, x)
    assert {path: len(calls) for path, calls in seen.items()} == {"one": 2, "other": 2}
