"""Any formula of masks, of any sizes, against its table written cell by cell."""

import operator
from itertools import product

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.attention import Causal, Dense, Packed, Padding, Prefix, StrictlyCausal, Window


def numbers(rows, high):
    return st.lists(st.integers(0, high), min_size=rows, max_size=rows)


def lengths(n):
    return torch.tensor(n, dtype=torch.long)


def kinds(batch, queries, keys):
    """How each mask is made, what it says of (row, place, key), and strategies for both
    their arguments."""
    reach, many = st.integers(0, 4), numbers(batch, keys + 1)
    cells = st.integers(0, 2 ** (queries * keys) - 1)  # one bit a cell, by place and key

    def written(bits):
        return [[bits >> (i * keys + j) & 1 == 1 for j in range(keys)] for i in range(queries)]

    def dense(bits):
        return Dense(torch.tensor(written(bits), dtype=torch.bool).view(queries, keys))

    def packed(documents):
        return Packed(lengths(documents).view(batch, keys))

    yield Causal, lambda b, i, j: j <= i, []
    yield StrictlyCausal, lambda b, i, j: j < i, []
    yield Window, lambda b, i, j, before, after: i - before <= j <= i + after, [reach, reach]
    yield lambda n: Padding(lengths(n)), lambda b, i, j, n: j < n[b], [many]
    yield lambda n: Padding(lengths(n), "left"), lambda b, i, j, n: j >= keys - n[b], [many]
    yield lambda n: Prefix(lengths(n)), lambda b, i, j, n: j < n[b], [many]
    yield dense, lambda b, i, j, n: written(n)[i - keys + queries][j], [cells]
    if queries <= keys:
        documents = st.lists(numbers(keys, 2), min_size=batch, max_size=batch)
        yield packed, lambda b, i, j, n: n[b][i] == n[b][j], [documents]


@st.composite
def leaves(draw, batch, queries, keys):
    """One mask beside its table."""
    make, rule, strategies = draw(st.sampled_from(list(kinds(batch, queries, keys))))
    arguments = [draw(strategy) for strategy in strategies]
    places = product(range(batch), range(keys - queries, keys), range(keys))
    cells = [rule(b, i, j, *arguments) for b, i, j in places]
    return make(*arguments), torch.tensor(cells, dtype=torch.bool).view(batch, queries, keys)


@st.composite
def formulas(draw):
    """(mask, its table, queries, keys) for any formula of up to five masks."""
    batch, queries, keys = (draw(st.integers(low, 6)) for low in (1, 0, 0))

    def joined(inner):
        pairs = st.tuples(st.sampled_from([operator.and_, operator.or_]), inner, inner)
        return pairs.map(lambda p: (p[0](p[1][0], p[2][0]), p[0](p[1][1], p[2][1])))

    tree = st.recursive(leaves(batch, queries, keys), joined, max_leaves=5)
    return *draw(tree), queries, keys


@settings(deadline=None, max_examples=150)
@given(formulas(), st.data())
def test_a_formula_of_masks_is_that_formula_of_their_tables(formula, data):
    mask, table, queries, keys = formula
    mask.check((table.shape[0],), queries, keys)
    assert torch.equal(mask.dense(queries, keys).expand_as(table), table)
    rows = data.draw(st.lists(st.integers(0, queries - 1), max_size=5) if queries else st.just([]))
    visible = mask.visible(torch.tensor(rows, dtype=torch.long), queries, keys)
    assert torch.equal(visible.expand(table.shape[0], len(rows), keys), table[:, rows])


@settings(deadline=None, max_examples=150)
@given(formulas(), st.data())
def test_a_span_holds_every_key_that_its_queries_see(formula, data):
    mask, table, queries, keys = formula
    first = data.draw(st.integers(0, max(queries - 1, 0)))
    last = data.draw(st.integers(first, max(queries - 1, 0)))
    low, high = mask.span(first, last, queries, keys)
    assert 0 <= low <= high <= keys
    outside = table[:, first : last + 1].clone()
    outside[..., low:high] = False
    assert not outside.any()


@settings(deadline=None, max_examples=60)
@given(formulas())
def test_rows_said_to_be_alike_are_alike(formula):
    mask, table, _, _ = formula
    if mask.rows_alike:
        assert torch.equal(table, table[:, :1].expand_as(table))


@settings(deadline=None, max_examples=60)
@given(formulas())
def test_the_mask_of_one_row_says_what_the_mask_says_of_that_row(formula):
    mask, table, queries, keys = formula
    for row in range(table.shape[0]):
        own = mask.pick(row).dense(queries, keys)
        assert torch.equal(own.expand(1, queries, keys), table[row : row + 1])
