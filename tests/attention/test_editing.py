"""Changing where a model looks, and what follows from it."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.attention import (
    Attention,
    Call,
    Causal,
    Dot,
    MultiHead,
    edit,
    freeze,
    set_to,
    swap,
    uniform,
    watch,
    zero,
)

BATCH, HEADS, ROWS, KEYS = 2, 3, 5, 7
CALL = Call("layers.0", 0, range(ROWS), tuple(range(HEADS)), HEADS)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([MultiHead(15, HEADS), MultiHead(15, HEADS)])

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = x + layer(x, mask=mask)
        return x


@pytest.fixture
def weights():
    return torch.rand(BATCH, HEADS, ROWS, KEYS)


def rest_is_as_it_was(changed, weights, touched):
    assert torch.equal(changed[~touched], weights[~touched])


def cells(*index):
    touched = torch.zeros(BATCH, HEADS, ROWS, KEYS, dtype=torch.bool)
    touched[index] = True
    return touched


ALL = slice(None)
CELLS = {
    "everything": ({}, (ALL,)),
    "a head": ({"heads": 1}, (ALL, 1)),
    "two heads": ({"heads": [0, 2]}, (ALL, [0, 2])),
    "a row": ({"rows": 3}, (ALL, ALL, 3)),
    "the last row": ({"rows": -1}, (ALL, ALL, -1)),
    "some rows": ({"rows": slice(1, 4)}, (ALL, ALL, slice(1, 4))),
    "a key": ({"keys": 6}, (ALL, ALL, ALL, 6)),
    "a cell": ({"heads": 2, "rows": 4, "keys": 0}, (ALL, 2, 4, 0)),
    "a block": ({"rows": slice(0, 2), "keys": slice(2, 5)}, (ALL, ALL, slice(0, 2), slice(2, 5))),
}


@pytest.mark.parametrize("name", CELLS)
def test_zero_reads_nothing_there_and_leaves_the_rest(name, weights):
    chosen, index = CELLS[name]
    touched, before = cells(*index), weights.clone()
    changed = zero(**chosen)(weights, None, CALL)
    assert (changed[touched] == 0).all()
    rest_is_as_it_was(changed, weights, touched)
    assert torch.equal(weights, before)


@pytest.mark.parametrize("name", CELLS)
def test_set_to_puts_a_number_there_and_leaves_the_rest(name, weights):
    chosen, index = CELLS[name]
    touched = cells(*index)
    changed = set_to(0.25, **chosen)(weights, None, CALL)
    assert (changed[touched] == 0.25).all()
    rest_is_as_it_was(changed, weights, touched)


@pytest.mark.parametrize("name", CELLS)
def test_uniform_makes_every_key_weigh_the_same(name, weights):
    chosen, index = CELLS[name]
    touched = cells(*index)
    changed = uniform(**chosen)(weights, None, CALL)
    assert_close(changed[touched], torch.full_like(changed[touched], 1 / KEYS))
    rest_is_as_it_was(changed, weights, touched)


def test_uniform_shares_among_what_may_be_seen(weights):
    mask = torch.zeros(1, 1, ROWS, KEYS, dtype=torch.bool)
    mask[..., 1, :4] = True
    changed = uniform()(weights, mask, CALL)
    assert_close(changed[0, 0, 1], torch.tensor([0.25] * 4 + [0.0] * 3))
    assert (changed[:, :, 0] == 0).all()


def test_set_to_takes_a_row_of_weights(weights):
    row = torch.rand(KEYS)
    changed = set_to(row, heads=1, rows=2)(weights, None, CALL)
    assert torch.equal(changed[:, 1, 2], row.expand(BATCH, KEYS))
    rest_is_as_it_was(changed, weights, cells(ALL, 1, 2))


def test_set_to_takes_a_whole_map(weights):
    other = torch.rand(ROWS, KEYS)
    assert torch.equal(set_to(other)(weights, None, CALL), other.expand_as(weights))


@pytest.mark.parametrize(
    "pairs, expected",
    [
        ({"heads": (0, 2)}, lambda w: w[:, [2, 1, 0]]),
        ({"rows": (1, 4)}, lambda w: w[:, :, [0, 4, 2, 3, 1]]),
        ({"keys": (0, 6)}, lambda w: w[..., [6, 1, 2, 3, 4, 5, 0]]),
        ({"heads": (1, 2), "keys": (0, 1)}, lambda w: w[:, [0, 2, 1]][..., [1, 0, 2, 3, 4, 5, 6]]),
    ],
    ids=["heads", "rows", "keys", "heads and keys"],
)
def test_swap_trades_two_for_each_other(pairs, expected, weights):
    assert torch.equal(swap(**pairs)(weights, None, CALL), expected(weights))


def test_freeze_holds_one_map_for_every_call(weights):
    held = torch.rand_like(weights)
    change = freeze(held)
    for _ in range(3):
        assert torch.equal(change(weights, None, CALL), held)


def test_freeze_plays_recorded_calls_in_their_order(weights):
    held = [torch.rand_like(weights) for _ in range(2)]
    change = freeze(held)
    assert torch.equal(change(weights, None, replace(CALL, step=0)), held[0])
    assert torch.equal(change(weights, None, replace(CALL, step=1)), held[1])
    with pytest.raises(ValueError, match="freeze holds 2 calls, and another one came"):
        change(weights, None, replace(CALL, step=2))


def test_a_frozen_attention_looks_at_another_sentence_as_at_the_first():
    model, first, second = Model(), torch.randn(2, 7, 15), torch.randn(2, 7, 15)
    with watch(model) as seen:
        model(first)
    (held,) = (read.weights for read in seen["layers.0"])
    with edit(model, {"layers.0": freeze(held)}), watch(model) as again:
        model(second)
    assert torch.equal(again["layers.0"][0].weights, held)
    assert not torch.equal(again["layers.1"][0].weights, seen["layers.1"][0].weights)


def heads_by_hand(layer, x, hidden=()):
    """One layer's reading written out, with some heads reading nothing."""
    q, k, v = (x @ layer.projection.weight.T + layer.projection.bias).chunk(3, dim=-1)
    read = []
    for head in range(HEADS):
        own = slice(5 * head, 5 * head + 5)
        weights = (q[..., own] @ k[..., own].mT / 5**0.5).softmax(dim=-1)
        read.append(weights @ v[..., own] * (head not in hidden))
    return torch.cat(read, dim=-1) @ layer.output.weight.T + layer.output.bias


def test_the_rest_of_the_model_goes_on_from_the_edit():
    model, x = Model().double(), torch.randn(2, 7, 15, dtype=torch.float64)
    with edit(model, {"layers.0": zero(heads=[0, 2])}):
        edited = model(x)
    first = x + heads_by_hand(model.layers[0], x, hidden=(0, 2))
    assert_close(edited, first + heads_by_hand(model.layers[1], first))
    assert not torch.allclose(edited, model(x), atol=1e-3)


def test_an_edited_row_moves_only_what_reads_from_it():
    model, x = Model(), torch.randn(2, 7, 15)
    plain = model(x, Causal())
    with edit(model, {"layers.0": zero(rows=4)}):
        edited = model(x, Causal())
    assert_close(edited[:, :4], plain[:, :4], atol=1e-5, rtol=1e-5)
    assert not torch.allclose(edited[:, 4], plain[:, 4], atol=1e-3)
    assert not torch.allclose(edited[:, 6], plain[:, 6], atol=1e-3)


def test_an_edit_knows_what_may_be_seen():
    attention, x = Attention(Dot()), torch.randn(1, 3, 5)
    with edit(attention, {"attention": "uniform"}):
        weights = attention(x, x, x, Causal()).weights
    assert_close(weights[0], torch.tensor([[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]]))


def test_gradients_flow_round_the_edit():
    attention = Attention(Dot())
    queries, keys, values = (torch.randn(2, n, 5) for n in (3, 7, 7))
    queries.requires_grad_()
    with edit(attention, {"attention": zero(rows=1)}):
        attention(queries, keys, values).context.square().sum().backward()
    assert (queries.grad[:, 1] == 0).all()
    assert (queries.grad[:, [0, 2]] != 0).any()


def test_changes_are_made_one_after_the_other():
    model, x = MultiHead(15, HEADS), torch.randn(2, 7, 15)
    with edit(model, {"attention": set_to(1.0)}), edit(model, {"attention": zero(rows=2)}):
        with watch(model) as seen:
            model(x)
        weights = seen["attention"][0].weights
        assert (weights[:, :, 2] == 0).all()
        assert (weights[:, :, :2] == 1).all()


def test_an_edit_that_ends_first_takes_away_only_its_own_change():
    attention, x = Attention(Dot()), torch.randn(1, 3, 5)
    first, second = (edit(attention, {"attention": zero(rows=row)}) for row in range(2))
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert (attention(x, x, x).weights == 0).all(dim=-1).tolist() == [[False, True, False]]
    second.__exit__(None, None, None)
    assert (attention(x, x, x).weights > 0).all()


def test_names_are_enough_for_the_plain_edits():
    model, x = Model(), torch.randn(2, 7, 15)
    with edit(model, {"layers.0:1": "zero", "layers.1": "uniform"}), watch(model) as seen:
        model(x)
    first, second = (seen[f"layers.{i}"][0].weights for i in range(2))
    assert (first[:, 1] == 0).all()
    assert_close(first[:, [0, 2]].sum(dim=-1), torch.ones(2, 2, 7))
    assert_close(second, torch.full_like(second, 1 / 7))


def test_nothing_remains_after_the_with():
    model, x = Model(), torch.randn(2, 7, 15)
    plain = model(x)
    with edit(model, {"layers.0": zero(), "layers.1": "uniform"}):
        assert not torch.allclose(model(x), plain)
    assert torch.equal(model(x), plain)


def test_nothing_remains_after_an_exception():
    model, x = Model(), torch.randn(2, 7, 15)
    plain = model(x)
    with pytest.raises(ValueError, match="keys"), edit(model, {"layers.0": zero(keys=99)}):
        model(torch.randn(2, 7, 15))
    with (
        pytest.raises(ValueError, match="no attention"),
        edit(model, {"layers.0": zero(), "x": zero()}),
    ):
        pass
    assert torch.equal(model(x), plain)


def test_an_attention_without_heads_can_be_edited_by_row_and_key():
    attention = Attention(Dot())
    x = torch.randn(2, 5, 3)
    with edit(attention, {"attention": zero(rows=1, keys=[0, 2])}):
        weights = attention(x, x, x).weights
    assert (weights[:, 1, [0, 2]] == 0).all()
    assert (weights[:, 0] > 0).all()
    flat = x[0]
    with edit(attention, {"attention": set_to(0.5, rows=1)}):
        assert attention(flat, flat, flat).weights[1].tolist() == [0.5] * 5


REFUSED = {
    "a path nearby": ({"layer.0": "zero"}, r"no attention at 'layer.0'; did you mean 'layers.0'\?"),
    "a path nowhere": ({"qqq": "zero"}, r"no attention at 'qqq'; there are: layers.0, layers.1"),
    "an unknown edit": ({"layers.0": "erase"}, r"edit 'erase' is not known; there are: zero, uni"),
    "a head that is none": ({"layers.0:x": "zero"}, r"head \('x'\) must be a whole number"),
    "a head twice": (
        {"layers.0:1": zero()},
        r"name heads inside the change, as in zero\(heads=1\)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_edit_that_cannot_be_planned_says_so(name):
    changes, message = REFUSED[name]
    with pytest.raises(ValueError, match=message), edit(Model(), changes):
        pass


def test_cells_beyond_the_last_are_refused(weights):
    with pytest.raises(ValueError, match=r"heads \(3\) must lie within 0 … 2"):
        zero(heads=3)(weights, None, CALL)
    with pytest.raises(ValueError, match=r"rows \(-6\) must lie within 0 … 4"):
        uniform(rows=-6)(weights, None, CALL)
    with pytest.raises(ValueError, match=r"heads \(0\) were named, but this attention has one"):
        zero(heads=0)(weights[:, 0], None, Call("a", 0, range(ROWS), (), 0))


def test_a_misspelt_axis_is_refused_at_once():
    with pytest.raises(TypeError, match="row"):
        zero(row=3)


def test_values_and_maps_must_fit(weights):
    with pytest.raises(ValueError, match=r"value \(3,\) does not fit the weights \(2, 3, 5, 7\)"):
        set_to(torch.rand(3))(weights, None, CALL)
    message = r"freeze holds weights \(5, 7\), but this call has \(2, 3, 5, 7\)"
    with pytest.raises(ValueError, match=message):
        freeze(torch.rand(5, 7))(weights, None, CALL)
    with pytest.raises(ValueError, match=r"swap \(0, 7\) does not fit the weights"):
        swap(keys=(0, 7))(weights, None, CALL)
    with pytest.raises(ValueError, match=r"swap \(0, 1\) does not fit the weights"):
        swap(heads=(0, 1))(weights[0, 0], None, Call("a", 0, range(ROWS), (), 0))
