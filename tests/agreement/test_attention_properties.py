"""Whatever the shapes and the mask: the formula's context, and no look where none is allowed."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from regard.attention import (
    Additive,
    Attention,
    Cosine,
    Dot,
    General,
    MultiHead,
    Proportional,
    ScaledDot,
    Softmax,
    Sparsemax,
    attention,
    fused,
)

SIZE = 3
SCORES = {
    "dot": lambda: Dot(),
    "scaled": lambda: ScaledDot(),
    "general": lambda: General(SIZE, SIZE),
    "cosine": lambda: Cosine(2.0),
    "additive": lambda: Additive(SIZE, SIZE, 5),
}
FORMULAS = {
    "dot": lambda s, q, k: (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(dim=-1),
    "scaled": lambda s, q, k: (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(dim=-1) / SIZE**0.5,
    "general": lambda s, q, k: torch.einsum("...id,ed,...je->...ij", q, s.matrix.weight, k),
    "cosine": lambda s, q, k: 2 * torch.cosine_similarity(q.unsqueeze(-2), k.unsqueeze(-3), dim=-1),
    "additive": lambda s, q, k: (
        torch.tanh(s.query(q).unsqueeze(-2) + s.key(k).unsqueeze(-3)) @ s.direction
    ),
}
names, sizes = st.sampled_from(list(SCORES)), st.integers(0, 7)


@st.composite
def cases(draw):
    """Queries, keys, values and a boolean mask, of any leading axes and sizes 0 … 7."""
    leading = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    rows, keys, value = draw(sizes), draw(sizes), draw(sizes)
    torch.manual_seed(draw(st.integers(0, 2**16)))
    shapes = [(rows, SIZE), (keys, SIZE), (keys, value)]
    tensors = [torch.randn(*leading, *shape, dtype=torch.float64) for shape in shapes]
    density = draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))
    heads = draw(st.booleans()) and len(leading) == 2
    axes = leading if heads else leading[:1]
    mask = torch.rand(*axes, rows, keys) < density
    return tensors, mask


@pytest.fixture(params=["whole", "in blocks"])
def _blocks(request, monkeypatch):
    if request.param == "in blocks":
        monkeypatch.setattr(fused, "MAX_WRITTEN_ENTRIES", 10)
        monkeypatch.setattr(attention, "SCORES_PER_BLOCK", 10)


def widen(mask, axes):
    while mask.dim() < axes:
        mask = mask.unsqueeze(1) if mask.dim() > 2 else mask.unsqueeze(0)
    return mask


@pytest.mark.usefixtures("_blocks")
@settings(deadline=None, max_examples=60)
@given(name=names, case=cases())
def test_the_context_is_the_formulas_for_any_shape_and_mask(name, case):
    (queries, keys, values), mask = case
    model = Attention(SCORES[name]()).double()
    with torch.no_grad():
        read = model(queries, keys, values, mask)
        scores = FORMULAS[name](model.score, queries, keys)
    visible = widen(mask, scores.dim()).expand_as(scores)
    weights = scores.masked_fill(~visible, -math.inf).softmax(dim=-1).nan_to_num(0.0)
    assert read.context.shape == (*queries.shape[:-1], values.shape[-1])
    assert_close(read.context, weights @ values)
    assert_close(read.weights, weights)
    assert (read.context[~visible.any(dim=-1)] == 0).all()


@pytest.mark.parametrize("weigh", [Softmax, Sparsemax, Proportional])
@settings(deadline=None, max_examples=25)
@given(case=cases())
def test_weights_are_nothing_where_hidden_and_a_whole_where_seen(weigh, case):
    (queries, keys, values), mask = case
    read = Attention(Dot(), weigh())(queries.abs(), keys.abs(), values, mask)
    weights = read.weights
    visible = widen(mask, weights.dim()).expand_as(weights)
    assert (weights[~visible] == 0).all()
    assert (weights >= 0).all()
    assert_close(weights.sum(dim=-1), visible.any(dim=-1).double())


@settings(deadline=None, max_examples=60)
@given(name=names, case=cases(), data=st.data())
def test_keys_in_another_order_have_their_weights_in_that_order(name, case, data):
    (queries, keys, values), mask = case
    order = torch.tensor(data.draw(st.permutations(range(keys.shape[-2]))), dtype=torch.long)
    model = Attention(SCORES[name]()).double()
    read = model(queries, keys, values, mask)
    other = model(queries, keys[..., order, :], values[..., order, :], mask[..., order])
    assert_close(other.weights, read.weights[..., order])
    assert_close(other.context, read.context)


@settings(deadline=None, max_examples=60)
@given(name=names, case=cases(), data=st.data())
def test_what_may_not_be_seen_makes_no_difference(name, case, data):
    (queries, keys, values), mask = case
    if not keys.shape[-2]:
        return
    hidden = data.draw(st.integers(0, keys.shape[-2] - 1))
    mask[..., hidden] = False
    model = Attention(SCORES[name]()).double()
    before = model(queries, keys, values, mask).context
    keys, values = keys.clone(), values.clone()
    keys[..., hidden, :] += 100.0
    values[..., hidden, :] -= 1000.0
    assert_close(model(queries, keys, values, mask).context, before)


@settings(deadline=None, max_examples=25)
@given(case=cases(), data=st.data())
def test_rows_on_demand_are_those_rows(case, data):
    (queries, keys, values), mask = case
    read = Attention(ScaledDot())(queries, keys, values, mask)
    rows = data.draw(st.lists(st.integers(0, max(queries.shape[-2] - 1, 0)), max_size=5))
    rows = rows if queries.shape[-2] else []
    assert_close(read.weights_of(rows=rows), read.weights[..., rows, :])


@settings(deadline=None, max_examples=25)
@given(batch=st.integers(0, 3), rows=sizes, keys=sizes, heads=st.sampled_from([1, 2, 3]))
def test_heads_read_any_number_of_words(batch, rows, keys, heads):
    model = MultiHead(12, heads, key_value_heads=1)
    output = model(torch.randn(batch, rows, 12), torch.randn(batch, keys, 12))
    assert output.shape == (batch, rows, 12)
    if keys == 0:
        assert_close(output, model.output.bias.expand(batch, rows, 12))
