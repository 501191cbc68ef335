"""The fused path: one context and one gradient, whole, by rows, and padded for the kernel."""

from itertools import cycle, product

import pytest
import torch
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from regard.attention import (
    ALiBi,
    Causal,
    Packed,
    Padding,
    Prefix,
    RelativeBias,
    StrictlyCausal,
    Window,
    fused,
)
from regard.attention.comparisons import InnerProduct
from regard.attention.fused import fused_context
from regard.attention.masks import as_mask, fit

MASKS = {
    "no mask": lambda rows, keys: None,
    "causal": lambda rows, keys: Causal(),
    "strictly causal": lambda rows, keys: StrictlyCausal(),
    "window": lambda rows, keys: Window(2, 1),
    "padding": lambda rows, keys: Padding(torch.tensor([0, keys])),
    "window and padding": lambda rows, keys: Window(1) & Padding(torch.tensor([3, keys])),
    "prefix": lambda rows, keys: Causal() | Prefix(torch.tensor([2, 0])),
    "packed": lambda rows, keys: Packed(torch.arange(2 * keys).view(2, keys) // 3),
    "tensor": lambda rows, keys: as_mask(torch.rand(2, rows, keys) > 0.5),
}
LEADING = [(2,), (2, 3), (2, 3, 2)]
SIZES = [(7, 7), (3, 7), (1, 7)]  # (query, key)
LIMITS = [1 << 22, 50, 1]  # all rows at once, some, one by one


def shapes():
    """Every mask over all sizes; limits and leading axes take turns, so that any two meet."""
    for (i, name), (j, size) in product(enumerate(MASKS), enumerate(SIZES)):
        yield name, size, LIMITS[(i + j) % 3], LEADING[(i + 2 * j) % 3]


def leaf(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def plain(queries, keys, values, scale, visible, bias):
    scores = queries @ keys.mT * scale
    if bias is not None:
        scores = scores + bias
    if visible is not None:
        scores = scores.masked_fill(~visible, -torch.inf)
    return scores.softmax(dim=-1).nan_to_num(0.0) @ values


def both(queries, keys, values, mask, bias=None, scale=0.7, sharpness=1.3):
    """The fused context beside the plain one, and the gradients of each."""
    rows, columns = queries.shape[-2], keys.shape[-2]
    ours = fused_context(InnerProduct(queries, keys, scale, bias), values, mask, sharpness)
    visible = None if mask is None else fit(mask.dense(rows, columns), queries.dim())
    added = None if bias is None else bias.table() * sharpness
    theirs = plain(queries, keys, values, scale * sharpness, visible, added)
    upstream = torch.randn_like(theirs)
    inputs = [queries, keys, values]
    if bias is not None and bias.by_distance.requires_grad:
        inputs.append(bias.by_distance)
    return [
        (out, *torch.autograd.grad(out, inputs, upstream, retain_graph=True))
        for out in (ours, theirs)
    ]


def agree(pair):
    for actual, expected in zip(*pair, strict=True):
        assert_close(actual, expected)


@pytest.mark.parametrize("name, size, limit, leading", list(shapes()), ids=str)
def test_every_mask_gives_the_plain_context_and_gradients(name, size, limit, leading, monkeypatch):
    monkeypatch.setattr(fused, "MAX_WRITTEN_ENTRIES", limit)
    rows, keys = size
    vectors = [leaf(*leading, n, 5) for n in (rows, keys, keys)]
    agree(both(*vectors, MASKS[name](rows, keys)))


@pytest.mark.parametrize(
    "pair, limit", list(zip(product(MASKS, [ALiBi, RelativeBias]), cycle(LIMITS))), ids=str
)
def test_every_mask_beside_a_bias_gives_the_plain_context_and_gradients(pair, limit, monkeypatch):
    monkeypatch.setattr(fused, "MAX_WRITTEN_ENTRIES", limit)
    name, make = pair
    bias = make(3).double()(5, 7)
    mask = MASKS[name](5, 7)
    agree(both(leaf(2, 3, 5, 11), leaf(2, 3, 7, 11), leaf(2, 3, 7, 11), mask, bias))


WIDTHS = [(3, 11), (11, 3), (1, 2), (2, 1)]


@pytest.mark.parametrize("widths, leading", list(zip(WIDTHS, cycle(LEADING))), ids=str)
def test_values_need_not_be_as_wide_as_keys(widths, leading):
    size, value = widths
    agree(both(*(leaf(*leading, 5, width) for width in (size, size, value)), Causal()))


FEW_KEYS = [(7, 3), (5, 1), (5, 0), (0, 5)]  # (query, key)
UNEVEN = ["no mask", "causal", "strictly causal", "window", "padding"]


@pytest.mark.parametrize(
    "pair, limit", list(zip(product(FEW_KEYS, UNEVEN), cycle([1 << 22, 1]))), ids=str
)
def test_more_queries_than_keys_and_empty_axes_read_what_the_formula_reads(
    pair, limit, monkeypatch
):
    monkeypatch.setattr(fused, "MAX_WRITTEN_ENTRIES", limit)
    (rows, keys), name = pair
    for leading in LEADING:
        vectors = [leaf(*leading, n, width) for n, width in ((rows, 5), (keys, 5), (keys, 3))]
        agree(both(*vectors, MASKS[name](rows, keys)))


def test_a_block_of_rows_reads_only_the_keys_in_its_span(monkeypatch):
    monkeypatch.setattr(fused, "MAX_WRITTEN_ENTRIES", 1)
    seen = []
    kernel = fused._sdpa

    def noting(queries, keys, *rest, **words):
        seen.append(keys.shape[-2])
        return kernel(queries, keys, *rest, **words)

    monkeypatch.setattr(fused, "_sdpa", noting)
    with torch.no_grad():
        both_masks = Window(2) & Padding(torch.tensor([11]))
        fused_context(
            InnerProduct(torch.randn(1, 11, 5), torch.randn(1, 11, 5)),
            torch.randn(1, 11, 5),
            both_masks,
            1.0,
        )
    assert seen == [1, 2] + [3] * 9


class Largest(TorchDispatchMode):
    """How many numbers the largest tensor has that is made meanwhile; views make none."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, function, types, inputs=(), words=None):
        made = function(*inputs, **(words or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
                # Not numel: an expanded view has many numbers and holds few.
                self.numbers = max(self.numbers, tensor.untyped_storage().nbytes() // 4)
        return made


BATCH_MASKS = {
    "no mask": lambda: None,
    "padding": lambda: Padding(torch.tensor([41, 61, 7, 61, 50])),
    "causal and padding": lambda: Causal() & Padding(torch.tensor([41, 61, 7, 61, 50])),
    "packed": lambda: Packed(torch.arange(5 * 61).view(5, 61) // 9),
    "a mask for each head": lambda: as_mask(torch.rand(5, 3, 61, 61) > 0.3),
}


def limited():
    """Every mask with every bias; limits take turns."""
    limits = [1 << 13, 3 * 61 * 61, 2 * 3 * 61 * 61 + 1]
    makers = [None, ALiBi, RelativeBias]
    for (i, name), (j, make) in product(enumerate(BATCH_MASKS), enumerate(makers)):
        yield name, make, limits[(i + j) % 3]


@pytest.mark.parametrize("grad", [False, True], ids=["without gradients", "with gradients"])
@pytest.mark.parametrize("name, make, limit", list(limited()))
def test_what_is_written_out_keeps_to_the_limit_whatever_batch_and_heads(
    name, make, limit, grad, monkeypatch
):
    monkeypatch.setattr(fused, "MAX_WRITTEN_ENTRIES", limit)
    position, mask = make and make(3), BATCH_MASKS[name]()
    tensors = [torch.randn(5, 3, 61, 2, requires_grad=grad) for _ in range(3)]
    with Largest() as largest, torch.set_grad_enabled(grad):
        bias = position and position(61, 61)
        context = fused_context(InnerProduct(*tensors[:2], 0.7, bias), tensors[2], mask, 1.0)
        if grad:
            context.sum().backward()
    assert largest.numbers <= limit
    visible = None if mask is None else fit(mask.dense(61, 61), 4)
    expected = plain(*tensors, 0.7, visible, None if bias is None else bias.table())
    assert_close(context, expected)


def test_no_written_mask_is_kept_for_the_backward_pass(monkeypatch):
    monkeypatch.setattr(fused, "MAX_WRITTEN_ENTRIES", 61 * 7)
    tensors = [torch.randn(1, 1, 61, 2, requires_grad=True) for _ in range(3)]
    sizes = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda x: sizes.append(x.numel()) or x, lambda x: x
    ):
        fused_context(InnerProduct(*tensors[:2]), tensors[2], Window(61, 61), 1.0)
    assert sum(sizes) < 61 * 61


def test_a_bias_alone_is_added_by_the_fused_kernel():
    class Kernels(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, inputs=(), words=None):
            called.append(str(function))
            return function(*inputs, **(words or {}))

    called = []
    queries, keys, values = (torch.randn(2, 3, 7, 5) for _ in range(3))
    with torch.no_grad(), Kernels():
        fused_context(InnerProduct(queries, keys, 1.0, ALiBi(3)(7, 7)), values, None, 1.0)
    assert any("flash_attention" in name for name in called)


def test_long_texts_without_a_batch_are_read_in_long_blocks(monkeypatch):
    monkeypatch.setattr(fused, "MAX_WRITTEN_ENTRIES", 31 * 31)
    blocks = []
    read = fused._rows_context
    monkeypatch.setattr(fused, "_rows_context", lambda *x: blocks.append(x[:2]) or read(*x))
    tensors = [torch.randn(31, 5) for _ in range(3)]
    with torch.no_grad():
        fused_context(InnerProduct(*tensors[:2]), tensors[2], Window(3), 1.0)
    assert blocks == [(0, 31)]


@pytest.mark.parametrize("limit", [1 << 22, 1], ids=["whole", "row by row"])
def test_nothing_is_kept_for_a_backward_pass_that_will_not_come(limit, monkeypatch):
    monkeypatch.setattr(fused, "MAX_WRITTEN_ENTRIES", limit)
    with torch.no_grad():
        queries, keys, values = leaf(2, 5, 3), leaf(2, 5, 3), leaf(2, 5, 3)
        context = fused_context(InnerProduct(queries, keys), values, Window(1), 1.0)
    assert not context.requires_grad


@pytest.mark.parametrize("pair, limit", list(zip(product(MASKS, SIZES), cycle(LIMITS))), ids=str)
def test_values_much_wider_than_keys_read_what_the_formula_reads(pair, limit, monkeypatch):
    monkeypatch.setattr(fused, "MAX_WRITTEN_ENTRIES", limit)
    name, (rows, keys) = pair
    for leading in LEADING:
        vectors = [leaf(*leading, n, width) for n, width in ((rows, 2), (keys, 2), (keys, 11))]
        agree(both(*vectors, MASKS[name](rows, keys)))


@pytest.mark.parametrize("make", [ALiBi, RelativeBias])
@pytest.mark.parametrize("name", MASKS)
def test_wide_values_beside_a_bias_read_what_the_formula_reads(name, make):
    bias, mask = make(3).double()(5, 7), MASKS[name](5, 7)
    agree(both(leaf(2, 3, 5, 2), leaf(2, 3, 7, 2), leaf(2, 3, 7, 11), mask, bias))


@pytest.mark.parametrize("dtype, near", [(torch.float16, 4e-3), (torch.bfloat16, 4e-2)])
def test_wide_values_in_half_precision_agree_as_far_as_its_digits_go(dtype, near):
    queries, keys, values = (torch.randn(2, 3, 7, width).to(dtype) for width in (4, 4, 20))
    expected = plain(queries.double(), keys.double(), values.double(), 50.0, None, None)
    context = fused_context(InnerProduct(queries, keys, 50.0), values, None, 1.0)
    assert context.dtype == dtype
    assert_close(context.double(), expected, atol=near, rtol=near)
    with torch.autocast("cpu", dtype):
        vectors = [x.float() for x in (queries, keys, values)]
        rounded = fused_context(InnerProduct(*vectors[:2], 50.0), vectors[2], Causal(), 1.0)
    assert rounded.dtype == dtype


def test_nothing_but_the_context_is_made_as_wide_as_wide_values():
    queries, keys, values = (torch.randn(1, 2, 31, width) for width in (3, 3, 48))
    made = []

    class Note(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            made.extend(x for x in tree_leaves(out) if isinstance(x, torch.Tensor))
            return out

    with torch.no_grad(), Note():
        fused_context(InnerProduct(queries, keys, 1.0), values, Causal(), 1.0)
    wide = {x.untyped_storage().data_ptr() for x in made if x.shape[-1:] == (48,)}
    assert len(wide - {values.untyped_storage().data_ptr()}) == 1
