"""Each mask against its definition, one query and one key at a time."""

import math
from itertools import product

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.testing import assert_close

from regard.attention import (
    Additive,
    Attention,
    Causal,
    Dense,
    Mask,
    Packed,
    Padding,
    Prefix,
    ScaledDot,
    StrictlyCausal,
    Window,
)
from regard.attention.masks import fit

SIZES = [(5, 5), (3, 7), (7, 3)]  # others in test_masks_any.py
LENGTHS = [0, 2, 7]


def by_definition(rule, batch, queries, keys):
    """rule(row, place, key) → bool, asked for every cell; place is where the query stands."""
    cells = product(range(batch), range(queries), range(keys))
    visible = [bool(rule(b, i + keys - queries, j)) for b, i, j in cells]
    return torch.tensor(visible, dtype=torch.bool).view(batch, queries, keys)


def draw(mask, queries, keys):
    """A mask as a drawing: one line a query, x where it may look."""
    rows = mask.dense(queries, keys)[0].tolist()
    return ["".join("x" if cell else "." for cell in row) for row in rows]


RULES = {
    "causal": (Causal(), lambda b, i, j: j <= i),
    "strictly causal": (StrictlyCausal(), lambda b, i, j: j < i),
    "window": (Window(2, 1), lambda b, i, j: -2 <= j - i <= 1),
    "window of itself": (Window(0), lambda b, i, j: j == i),
    "padding": (Padding(torch.tensor(LENGTHS)), lambda b, i, j: j < LENGTHS[b]),
    "prefix": (Prefix(torch.tensor(LENGTHS)), lambda b, i, j: j < LENGTHS[b]),
}


@pytest.mark.parametrize("queries, keys", SIZES)
@pytest.mark.parametrize("name", RULES)
def test_a_mask_says_for_each_cell_what_its_definition_says(name, queries, keys):
    mask, rule = RULES[name]
    expected = by_definition(rule, len(LENGTHS), queries, keys)
    assert torch.equal(mask.dense(queries, keys).expand_as(expected), expected)


@pytest.mark.parametrize("queries, keys", SIZES)
def test_padding_on_the_left_opens_the_last_keys(queries, keys):
    mask = Padding(torch.tensor(LENGTHS), side="left")
    expected = by_definition(lambda b, i, j: j >= keys - LENGTHS[b], 3, queries, keys)
    assert torch.equal(mask.dense(queries, keys).expand_as(expected), expected)


@pytest.mark.parametrize("queries", [7, 3, 1])
def test_packed_documents_see_only_themselves(queries):
    documents = [[4, 4, 4, 9, 9, 2, 2], [0, 1, 1, 1, 1, 0, 0]]
    expected = by_definition(lambda b, i, j: documents[b][i] == documents[b][j], 2, queries, 7)
    assert torch.equal(Packed(torch.tensor(documents)).dense(queries, 7), expected)


def test_causal_lets_nobody_look_ahead():
    assert draw(Causal(), 4, 4) == ["x...", "xx..", "xxx.", "xxxx"]


def test_strictly_causal_leaves_the_first_query_with_nothing():
    assert draw(StrictlyCausal(), 4, 4) == ["....", "x...", "xx..", "xxx."]


def test_fewer_queries_than_keys_are_the_last_ones():
    assert draw(Causal(), 2, 5) == ["xxxx.", "xxxxx"]
    assert draw(StrictlyCausal(), 2, 5) == ["xxx..", "xxxx."]
    assert draw(Window(1), 2, 5) == ["..xx.", "...xx"]


def test_a_prefix_is_open_to_all_and_the_rest_is_causal():
    mask = Causal() | Prefix(torch.tensor([2]))
    assert draw(mask, 4, 4) == ["xx..", "xx..", "xxx.", "xxxx"]


def test_a_window_within_a_document_is_both():
    mask = Window(1, 1) & Packed(torch.tensor([[0, 0, 1, 1]]))
    assert draw(mask, 4, 4) == ["xx..", "xx..", "..xx", "..xx"]


def test_masks_combine_with_boolean_tensors_from_both_sides():
    even = torch.tensor([[True, False, True]])
    for mask in (Causal() & even, even & Causal()):
        assert draw(mask, 3, 3) == ["x..", "x..", "x.x"]
    for mask in (StrictlyCausal() | even, even | StrictlyCausal()):
        assert draw(mask, 3, 3) == ["x.x", "x.x", "xxx"]


def test_heads_of_one_side_are_kept_when_the_other_has_none():
    heads = torch.rand(2, 3, 5, 5) > 0.5  # (batch, head, query, key)
    mask = Padding(torch.tensor([5, 2])) & heads
    columns = torch.arange(5)
    expected = heads & (columns < torch.tensor([5, 2]).view(2, 1, 1, 1))
    assert torch.equal(mask.dense(5, 5), expected)


def test_a_mask_answers_for_the_rows_it_is_asked_about():
    mask = Causal() & Padding(torch.tensor([3, 7]))
    rows = torch.tensor([4, 0, 4])
    assert torch.equal(mask.visible(rows, 5, 7), mask.dense(5, 7)[:, [4, 0, 4]])


@pytest.mark.parametrize(
    "mask",
    [
        Padding(torch.tensor([1, 3, 2])),
        Padding(torch.tensor([1, 3, 2]), side="left"),
        Prefix(torch.tensor([1, 3, 2])),
        Packed(torch.tensor([[0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 2, 3]])),
        Dense(torch.rand(3, 4, 4) > 0.5),
        Causal() & Padding(torch.tensor([1, 3, 2]), side="left"),
    ],
    ids=["padding", "padding on the left", "prefix", "packed", "tensor", "both"],
)
def test_picked_rows_see_what_they_saw(mask):
    whole = mask.dense(4, 4)
    assert torch.equal(mask.pick(torch.tensor([2, 0])).dense(4, 4), whole[[2, 0]])
    assert torch.equal(mask.pick(1).dense(4, 4), whole[1:2])


def test_a_mask_without_heads_is_the_same_for_each_head():
    dense = torch.rand(2, 3, 5) > 0.5
    assert torch.equal(fit(dense, 4).expand(2, 11, 3, 5), dense.unsqueeze(1).expand(2, 11, 3, 5))
    assert fit(dense[:1], 2).shape == (3, 5)


def test_lengths_are_those_of_the_moment_the_mask_was_made():
    lengths = torch.tensor([3])
    padding, packed = Padding(lengths), Packed(lengths.unsqueeze(0))
    lengths.zero_()
    assert padding.lengths.tolist() == [3]
    assert packed.documents.tolist() == [[3]]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32])
def test_lengths_may_be_small_numbers_beside_many_keys(dtype):
    lengths = torch.tensor([3, 100], dtype=dtype)
    for side in ("left", "right"):
        assert Padding(lengths, side).dense(1, 300).sum(dim=-1).tolist() == [[3], [100]]


def test_a_mask_written_as_a_formula_reads_back_as_one():
    mask = (Causal() | Prefix(torch.tensor([1, 2]))) & Window(3, 1)
    assert repr(mask) == "((Causal() | Prefix([1, 2])) & Window(before=3, after=1))"


def test_a_causal_span_ends_with_its_last_query_and_a_window_starts_with_its_first():
    assert Causal().span(2, 4, 7, 7) == (0, 5)
    assert StrictlyCausal().span(0, 0, 7, 7) == (0, 0)
    assert StrictlyCausal().span(2, 4, 7, 7) == (0, 4)
    assert Window(2, 1).span(3, 4, 7, 7) == (1, 6)
    assert (Causal() & Window(2, 1)).span(3, 4, 7, 7) == (1, 5)
    assert (Window(1) | Window(0, 2)).span(3, 4, 7, 7) == (2, 7)


def test_masks_that_see_nothing_in_common_have_an_empty_span():
    class Between(Mask):
        def __init__(self, low, high):
            self.low, self.high = low, high

        def span(self, first, last, queries, keys):
            return self.low, self.high

    low, high = (Between(0, 2) & Between(5, 7)).span(0, 6, 7, 7)
    assert low == high


def test_a_window_counts_positions():
    with pytest.raises(ValueError, match=r"before \(-1\) must be 0 or more"):
        Window(-1)
    with pytest.raises(ValueError, match=r"after \(-3\) must be 0 or more"):
        Window(2, -3)


@pytest.mark.parametrize("mask", [Padding, Prefix])
@pytest.mark.parametrize(
    "lengths", [[3, 5], torch.tensor([3.0]), torch.tensor(3), torch.tensor([True])], ids=str
)
def test_lengths_must_be_whole_numbers_one_a_row(mask, lengths):
    with pytest.raises(ValueError, match=r"lengths \(.*\) must be a tensor of whole numbers"):
        mask(lengths)


def test_lengths_may_not_be_negative():
    with pytest.raises(ValueError, match=r"lengths \(\[3, -1\]\) must be 0 or more"):
        Padding(torch.tensor([3, -1]))


def test_padding_stands_on_one_of_two_sides():
    with pytest.raises(ValueError, match=r"side \('top'\) must be 'right' or 'left'"):
        Padding(torch.tensor([3]), side="top")


def test_documents_are_whole_numbers_for_each_key():
    with pytest.raises(ValueError, match=r"documents \(torch.int64 \(3,\)\) must be a tensor"):
        Packed(torch.tensor([0, 0, 1]))
    with pytest.raises(ValueError, match="Packed documents number 3 keys, but there are 5"):
        Packed(torch.tensor([[0, 0, 1]])).check((1,), 5, 5)


def test_packed_documents_have_no_room_for_more_queries_than_keys():
    with pytest.raises(ValueError, match=r"5.*3|3.*5"):
        Packed(torch.tensor([[0, 0, 1]])).check((1,), 5, 3)


def test_a_tensor_mask_must_be_boolean():
    with pytest.raises(ValueError, match=r"mask \(torch.float32 \(3, 5\)\) must be a boolean"):
        Dense(torch.zeros(3, 5))
    with pytest.raises(ValueError, match=r"mask \(int 3\) must be a boolean tensor or a Mask"):
        Causal() & 3


def test_a_tensor_mask_has_two_to_four_axes():
    with pytest.raises(ValueError, match=r"mask \(5,\) must be \(query, key\)"):
        Dense(torch.ones(5, dtype=torch.bool))


@pytest.mark.parametrize("mask", [Padding, Prefix])
def test_lengths_must_be_as_many_as_the_batch_has_rows(mask):
    message = "lengths are for a batch of 3, but the batch has 2 rows"
    with pytest.raises(ValueError, match=message):
        mask(torch.tensor([1, 2, 3])).check((2,), 5, 5)
    with pytest.raises(ValueError, match=message):
        (Causal() & mask(torch.tensor([1, 2, 3]))).check((2,), 5, 5)


@pytest.mark.parametrize("mask", [Padding, Prefix])
def test_one_length_is_that_of_every_row(mask):
    one = mask(torch.tensor([2]))
    one.check((5, 3), 7, 7)
    assert one.pick(4).lengths.tolist() == [2]


def test_rows_are_alike_only_where_both_sides_say_so():
    padding = Padding(torch.tensor([2]))
    assert (padding & Prefix(torch.tensor([1]))).rows_alike
    for mask in (padding & Causal(), Causal() | padding):
        assert not mask.rows_alike


@pytest.mark.parametrize(
    "leading, shape",
    [
        ((2,), (3, 5, 7)),
        ((2,), (2, 3, 7)),
        ((2,), (2, 5, 3)),
        ((2,), (2, 11, 5, 7)),
        ((2,), (1, 1, 5, 7)),
        ((2, 11), (2, 3, 5, 7)),
        ((2, 11), (3, 5, 7)),
        ((2, 3, 11), (2, 3, 5, 7)),
        ((), (2, 5, 7)),
        ((), (1, 1, 5, 7)),
    ],
)
def test_a_tensor_mask_must_fit_the_scores(leading, shape):
    with pytest.raises(ValueError, match=r"mask \(.*\) does not fit the scores \(.*5, 7\)"):
        Dense(torch.ones(shape, dtype=torch.bool)).check(leading, 5, 7)


@pytest.mark.parametrize(
    "leading, shape",
    [
        ((), (5, 7)),
        ((2,), (1, 7)),
        ((2, 11), (2, 1, 7)),
        ((2, 11), (1, 11, 5, 1)),
        ((2, 3, 11), (2, 5, 7)),
    ],
)
def test_a_tensor_mask_may_leave_axes_out_or_have_one_for_all(leading, shape):
    Dense(torch.ones(shape, dtype=torch.bool)).check(leading, 5, 7)


def test_a_mask_of_ones_own_needs_only_visible():
    class Odd(Mask):
        def visible(self, rows, queries, keys):
            return (torch.arange(keys) % 2 == 1).expand(1, len(rows), keys)

    assert draw(Odd() & Causal(), 4, 4) == ["....", ".x..", ".x..", ".x.x"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_mask_written_once_says_what_its_symbols_say_at_every_layer(dtype):
    """Left-padded steps against torch's kernel; one row sees nothing and reads zeros."""
    query, keys, values = (torch.randn(3, 2, n, 8).to(dtype) for n in (1, 7, 7))
    visible = torch.arange(7) >= torch.tensor([0, 7, 3]).view(3, 1, 1, 1)
    expected = scaled_dot_product_attention(query, keys, values, visible)
    lengths = torch.tensor([7, 0, 4])
    symbolic = Causal() & Padding(lengths, side="left")
    written = Padding(lengths, side="left").write_out(1, 7)
    attention = Attention(ScaledDot())
    for mask in (symbolic, written, written):
        read = attention(query, keys, values, mask)
        assert_close(read.context, expected)
        assert_close(read.pick(2).weights, attention(query, keys, values, visible).weights[2:])
    with torch.autocast("cpu", torch.bfloat16):
        rounded = attention(query, keys, values, written).context
        assert_close(rounded, scaled_dot_product_attention(query, keys, values, visible))


def test_a_mask_written_once_makes_its_numbers_once():
    written = Padding(torch.tensor([2])).write_out(1, 3)
    assert written.bias(torch.float32) is written.bias(torch.float32)
    assert written.bias(torch.float32).tolist() == [[[0.0, 0.0, -math.inf]]]
    assert written.bias(torch.float64).dtype == torch.float64
    assert written.pick(slice(0, 1)).bias(torch.float32).tolist() == [[[0.0, 0.0, -math.inf]]]


@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_may_run_along_every_leading_axis(side):
    """The words of each sentence of each document, against torch's kernel and its gradients."""
    lengths = torch.tensor([[7, 3, 0], [1, 5, 2]])  # (document, sentence)
    column = torch.arange(7)
    visible = column < lengths[..., None] if side == "right" else column >= 7 - lengths[..., None]
    for scores in (ScaledDot(), Additive(5, 5, 4)):
        attention = Attention(scores).double()
        query = torch.randn(2, 3, 1, 5, dtype=torch.float64, requires_grad=True)
        words = torch.randn(2, 3, 7, 5, dtype=torch.float64, requires_grad=True)
        read = attention(query, words, words, Padding(lengths, side))
        flat = [x.flatten(0, 1) for x in (query, words, visible.unsqueeze(-2))]
        each = attention(flat[0], flat[1], flat[1], flat[2])
        assert_close(read.context.flatten(0, 1), each.context)
        assert_close(read.weights.flatten(0, 1), each.weights)
        if isinstance(scores, ScaledDot):
            expected = scaled_dot_product_attention(query, words, words, visible.unsqueeze(-2))
            assert_close(read.context, expected)
            upstream = torch.randn_like(expected)
            ours = torch.autograd.grad(read.context, (query, words), upstream)
            theirs = torch.autograd.grad(expected, (query, words), upstream)
            for actual, correct in zip(ours, theirs, strict=True):
                assert_close(actual, correct)


def test_padding_over_leading_axes_joins_other_masks_and_is_picked():
    lengths = torch.tensor([[7, 3, 5], [1, 5, 2]])
    mask = Causal() & Padding(lengths)
    expected = torch.ones(7, 7).tril().bool() & (torch.arange(7) < lengths.view(2, 3, 1, 1))
    assert torch.equal(mask.dense(7, 7), expected)
    assert torch.equal(mask.pick(torch.tensor([1])).dense(7, 7), expected[1:])
    attention, x = Attention(ScaledDot()), torch.randn(2, 3, 2, 7, 5)  # heads behind them
    read = attention(x, x, x, Causal() & Padding(lengths.unsqueeze(-1)))
    assert_close(read.context, scaled_dot_product_attention(x, x, x, expected.unsqueeze(2)))


def test_lengths_that_do_not_fit_the_leading_axes_are_refused():
    x = torch.randn(2, 3, 7, 5)
    for lengths in (torch.ones(2, 2).long(), torch.ones(2, 3, 1).long()):
        with pytest.raises(ValueError, match=r"Padding lengths \(.*\) do not fit the leading axes"):
            Attention(ScaledDot())(x, x, x, Padding(lengths))


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (Causal(), [[1, 1, 1, 1, 1, 1, 1]] * 2),
        (StrictlyCausal(), [[1, 1, 1, 1, 1, 1, 0]] * 2),
        (Window(2), [[0, 0, 0, 0, 1, 1, 1]] * 2),
        (Prefix(torch.tensor([2, 3])), [[1, 1, 0, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0, 0]]),
        # Of five keys the first row had two of padding, the second none; two words came behind.
        (
            Causal() & Padding(torch.tensor([3, 5]), side="left"),
            [[0, 0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1]],
        ),
        (
            Window(1) | Prefix(torch.tensor([1, 2])),
            [[1, 0, 0, 0, 0, 1, 1], [1, 1, 0, 0, 0, 1, 1]],
        ),
    ],
)
def test_over_two_more_keys_a_mask_says_what_the_last_of_seven_may_see(mask, expected):
    grown = mask.append(2).dense(1, 7)[:, 0]
    assert grown.expand(2, 7).int().tolist() == expected


def test_a_mask_written_out_grows_by_keys_that_may_be_seen():
    allowed = torch.tensor([[[True, False, True]]])
    assert Dense(allowed).append(2).allowed.tolist() == [[[True, False, True, True, True]]]
    assert type(Causal().write_out(1, 3).append(1)) is type(Causal().write_out(1, 3))


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (Padding(torch.tensor([2])), r"append \(1\): keys behind padding on the right"),
        (Packed(torch.tensor([[0, 1]])), r"append \(1\): nobody knows which document"),
    ],
)
def test_a_mask_that_cannot_grow_says_why(mask, message):
    with pytest.raises(ValueError, match=message):
        mask.append(1)
