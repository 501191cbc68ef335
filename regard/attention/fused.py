"""softmax(scores) values on torch's fused kernel, which never builds the (query, key) matrix.

The kernel knows causal masks and masks that are alike for every query. Any other mask, and any
position bias, has to be written out for it; that is done for a block of rows at a time, over the
keys that block can see, so that memory stays bounded and a window costs what a window should.

The kernel wants keys as wide as values. Where values are much wider, as the senses of a word are,
it would multiply mostly padding; there the blocks take two plain products each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from regard.attention.comparisons import InnerProduct
from regard.attention.dropout import drop
from regard.attention.masks import Causal, Mask, WrittenMask, fit
from regard.attention.precision import (
    at_least_single,
    autocast_dtype,
    without_autocast,
)
from regard.attention.weighings import masked_softmax

MAX_WRITTEN_ENTRIES = 1 << 22
"""How many mask entries may be written out at once: 16 MB of numbers."""

MIN_HEADS_IN_STEP = 256
"""From so many heads of all rows on, the one query of each takes plain products."""

MIN_WIDE_RATIO = 4
"""Values this many times as wide as their keys are not worth the padding."""


def fused_context(
    comparison: InnerProduct, values: Tensor, mask: Mask | None, sharpness: float
) -> Tensor:
    """softmax(sharpness · scores) values, (batch, …, query, value)."""
    if comparison.bias is not None and autocast_dtype(values.device) is not None:
        return _biased_context_under_autocast(comparison, values, mask, sharpness)
    queries, keys = comparison.sizes
    scale = comparison.scale * sharpness
    if isinstance(mask, Causal) and queries == 1:
        mask = None  # the last query sees every key
    if _is_large_step(comparison, values, mask):
        return _step_context(comparison, values, mask, scale)
    if comparison.bias is None and not _is_wide(comparison.keys, values):
        if mask is None:
            return _sdpa(comparison.queries, comparison.keys, values, None, scale)
        if isinstance(mask, Causal) and queries == keys:
            return _sdpa(comparison.queries, comparison.keys, values, None, scale, causal=True)
        if mask.rows_alike or queries == 1:
            row = _write_row(mask, comparison, values)
            return _sdpa(comparison.queries, comparison.keys, values, row, scale)
    return _blockwise_context(comparison, values, mask, sharpness)


def _is_wide(keys: Tensor, values: Tensor) -> bool:
    return values.shape[-1] >= MIN_WIDE_RATIO * keys.shape[-1]


def _write_row(mask: Mask, comparison: InnerProduct, values: Tensor) -> Tensor:
    """The one row that stands for all queries, as the kernel takes it."""
    if isinstance(mask, WrittenMask) and mask.rows_alike:
        return fit(mask.bias(values.dtype), comparison.axes)
    row = torch.zeros(1, dtype=torch.long, device=values.device)
    return fit(mask.visible(row, *comparison.sizes), comparison.axes)


def _biased_context_under_autocast(
    comparison: InnerProduct, values: Tensor, mask: Mask | None, sharpness: float
) -> Tensor:
    """With the vectors rounded as autocast would, but not the bias, in which far keys would fall
    together."""
    dtype = _context_dtype(values)
    queries, keys = comparison.queries.to(dtype), comparison.keys.to(dtype)
    with without_autocast(values.device):
        rounded = replace(comparison, queries=queries, keys=keys)
        return fused_context(rounded, values.to(dtype), mask, sharpness)


def _context_dtype(values: Tensor) -> torch.dtype:
    """What the kernel answers with: the values' own, or autocast's, which leaves double alone."""
    rounded = None if values.dtype == torch.float64 else autocast_dtype(values.device)
    return values.dtype if rounded is None else rounded


def _is_large_step(comparison: InnerProduct, values: Tensor, mask: Mask | None) -> bool:
    """Whether this is a step of a decoder with many rows. The kernel takes each head of each row by
    itself, which for one query costs more than the work."""
    queries, keys = comparison.queries, comparison.keys
    if torch.is_grad_enabled() or comparison.bias is not None or queries.shape[-2] != 1:
        return False
    single = queries.is_cpu and queries.dtype == torch.float32
    if not single or queries.shape[:-2].numel() < MIN_HEADS_IN_STEP or queries.dim() != 4:
        return False
    if autocast_dtype(values.device) is not None or torch.compiler.is_compiling():
        return False
    if not all(x.stride(0) == x.shape[1] * x.stride(1) for x in (keys, values)):
        return False  # they would have to be copied first
    return mask is None or (isinstance(mask, WrittenMask) and not mask.blind)


def _step_context(
    comparison: InnerProduct, values: Tensor, mask: Mask | None, scale: float
) -> Tensor:
    """The context of one query a row, (batch, head, 1, value), by products over all heads."""
    q = comparison.queries.flatten(0, 1)  # (batch · head, 1, size)
    keys, v = comparison.keys.flatten(0, 1).transpose(1, 2), values.flatten(0, 1)
    if mask is None:
        scores = torch.bmm(q, keys).mul_(scale)  # (batch · head, 1, key)
    else:
        bias = _plain_bias(comparison, mask, q.dtype)[0]
        scores = torch.baddbmm(bias, q, keys, alpha=scale)
    # By hand: torch's softmax takes ten times as long for rows as short as a sentence.
    scores = scores.sub_(scores.amax(dim=-1, keepdim=True)).exp_()
    weights = scores.div_(scores.sum(dim=-1, keepdim=True))
    return torch.bmm(weights, v).view(*comparison.queries.shape[:-1], v.shape[-1])


def plain_context(
    comparison: InnerProduct,
    values: Tensor,
    mask: Mask | None,
    sharpness: float,
    dropout: float = 0.0,
) -> Tensor:
    """The same by two plain products over all heads; the mask is none, causal, or alike for all
    queries. Unlike the kernel it can drop weights.

    In the precision the kernel would answer with, and like the kernel with float32 scores: in
    float16 they overflow, and in bfloat16 they lose digits that the softmax makes shares of.
    """
    q, k, v = (_to_four_axes(x).squeeze(1) for x in (comparison.queries, comparison.keys, values))
    dtype = _context_dtype(v)
    with without_autocast(v.device):
        q, k = at_least_single(q), at_least_single(k)
        bias, sees = _plain_bias(comparison, mask, q.dtype)
        scores = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=comparison.scale * sharpness)
        weights = scores.softmax(dim=-1)  # (batch · …, query, key)
        weights = drop(weights if sees is None else weights * sees, dropout)
        # CPUs multiply bfloat16 as it is, but widen float16 number by number.
        v = v if dtype == torch.bfloat16 else at_least_single(v)
        context = torch.bmm(weights.to(v.dtype), v).to(dtype)
    return context.reshape(*comparison.queries.shape[:-1], values.shape[-1])


def _plain_bias(
    comparison: InnerProduct, mask: Mask | None, dtype: torch.dtype
) -> tuple[Tensor, Tensor | None]:
    """What is added to the scores (batch · …, query, key), 0 where one may look, else −∞; and what
    the weights are multiplied by if somebody may look nowhere, for whom a softmax would be NaN."""
    (queries, keys), device = comparison.sizes, comparison.device
    if mask is None:
        return torch.zeros((), dtype=dtype, device=device), None
    if isinstance(mask, Causal):
        hidden = torch.full((queries, keys), float("-inf"), dtype=dtype, device=device)
        return hidden.triu(1), None
    written = mask if isinstance(mask, WrittenMask) else mask.write_out(1, keys, device)
    bias, sees = written.bias(dtype), None
    leading = comparison.queries.shape[:-2]

    def for_all_heads(tensor: Tensor) -> Tensor:
        shape = (*leading, 1, tensor.shape[-1])
        return fit(tensor, comparison.axes).expand(shape).reshape(leading.numel(), *shape[-2:])

    if written.blind:
        seen = written.allowed.any(dim=-1, keepdim=True)
        bias, sees = bias.masked_fill(~seen, 0.0), for_all_heads(seen.to(dtype))
    return for_all_heads(bias), sees


def _blockwise_context(
    comparison: InnerProduct, values: Tensor, mask: Mask | None, sharpness: float
) -> Tensor:
    """A block of queries at a time, and of the batch where its rows have matrices of their own."""
    batch_step, query_step = _block_sizes(comparison, values, mask)
    queries, batch = comparison.sizes[0], _batch_size(comparison)
    if queries == 0 or (batch_step >= batch and query_step >= queries):
        return _rows_context(0, queries, comparison, mask, sharpness, comparison.queries, values)
    contexts = []
    for part, part_values, part_mask in _split_batch(comparison, values, mask, batch_step):
        blocks = []
        for first in range(0, queries, query_step):
            end = min(first + query_step, queries)
            block = partial(_rows_context, first, end, part, part_mask, sharpness)
            if torch.is_grad_enabled():
                # The kernel keeps the written mask for its backward pass. All blocks together would
                # be the whole matrix, so each is computed again when its gradient is due.
                block = partial(checkpoint, block, use_reentrant=False, preserve_rng_state=False)
            blocks.append(block(part.queries, part_values))
        contexts.append(torch.cat(blocks, dim=-2))
    return contexts[0] if len(contexts) == 1 else torch.cat(contexts)


def _batch_size(comparison: InnerProduct) -> int:
    """How many rows the batch has, which is one when nothing leads queries and keys."""
    return comparison.queries.shape[:-2][:1].numel()


def _block_sizes(comparison: InnerProduct, values: Tensor, mask: Mask | None) -> tuple[int, int]:
    """How many rows of the batch, and how many queries, can be written out at once."""
    queries, keys = comparison.sizes
    batch = _batch_size(comparison)
    written = _written_leading_axes(comparison, values, mask)
    rows, heads = written[:1].numel(), written[1:].numel()
    if rows == 1 or heads == 1:
        # No more queries than with a mask for each row of the batch: a window then spans few keys.
        return batch, max(1, MAX_WRITTEN_ENTRIES // max(keys * max(batch, heads), 1))
    # All queries of one row of the batch before those of the next: each block has gradients for all
    # its keys, and of those there are fewer this way.
    query_step = max(1, min(queries, MAX_WRITTEN_ENTRIES // max(keys * heads, 1)))
    return max(1, MAX_WRITTEN_ENTRIES // max(keys * heads * query_step, 1)), query_step


def _written_leading_axes(
    comparison: InnerProduct, values: Tensor, mask: Mask | None
) -> torch.Size:
    """The leading axes of what is written out; those of size 1 share one (query, key) matrix."""
    leading, bias = comparison.queries.shape[:-2], comparison.bias
    learned = bias is not None and bias.by_distance.requires_grad
    all_scores = (learned and torch.is_grad_enabled()) or _is_wide(comparison.keys, values)
    if all_scores or len(leading) > 2:
        # The kernel has no gradient for what is added, so torch writes every score out, as do two
        # plain products; and more than two leading axes are laid out as one.
        return leading
    written = torch.Size([1] * len(leading))
    if bias is not None:
        written = torch.Size([1, bias.by_distance.shape[0]])
    if mask is not None:
        no_rows = torch.zeros(0, dtype=torch.long, device=comparison.device)
        visible = fit(mask.visible(no_rows, *comparison.sizes), comparison.axes)
        written = torch.broadcast_shapes(written, visible.shape[:-2])
    return written


def _split_batch(
    comparison: InnerProduct, values: Tensor, mask: Mask | None, batch_step: int
) -> Iterator[tuple[InnerProduct, Tensor, Mask | None]]:
    """Comparison, values and mask for `batch_step` rows of the batch at a time."""
    batch = _batch_size(comparison)
    if batch_step >= batch:
        yield comparison, values, mask
        return
    for first in range(0, batch, batch_step):
        rows = slice(first, first + batch_step)
        yield comparison.pick(rows), values[rows], mask and mask.pick(rows)


def _rows_context(
    first: int,
    end: int,
    comparison: InnerProduct,
    mask: Mask | None,
    sharpness: float,
    queries: Tensor,
    values: Tensor,
) -> Tensor:
    """The context of queries first … end − 1."""
    count, keys = comparison.sizes
    low, high = (0, keys) if mask is None else mask.span(first, end - 1, count, keys)
    rows = torch.arange(first, end, device=values.device)
    scale = comparison.scale * sharpness
    attn_mask: Tensor | None = None
    if mask is not None:
        attn_mask = fit(mask.visible(rows, count, keys), comparison.axes)[..., low:high]
    if comparison.bias is not None:
        bias = comparison.bias.rows(rows).table()[..., low:high] * sharpness  # (head, rows, key)
        bias = bias.unsqueeze(0)  # with fewer than four axes torch would not take the fused kernel
        attn_mask = bias if attn_mask is None else bias.masked_fill(~attn_mask, float("-inf"))
        attn_mask = attn_mask.to(_bias_dtype(values))
    part_keys, part_values = comparison.keys[..., low:high, :], values[..., low:high, :]
    compute = _wide_context if _is_wide(part_keys, part_values) else _sdpa
    return compute(queries[..., first:end, :], part_keys, part_values, attn_mask, scale)


def _wide_context(
    queries: Tensor, keys: Tensor, values: Tensor, attn_mask: Tensor | None, scale: float
) -> Tensor:
    """What the kernel would give, by a product with the keys and one with the values."""
    dtype = _context_dtype(values)
    with without_autocast(values.device):
        # As the kernel does, scores in float32 at the least.
        scores = (at_least_single(queries.to(dtype)) * scale) @ at_least_single(keys.to(dtype)).mT
        if attn_mask is not None and attn_mask.dtype != torch.bool:
            seen = attn_mask > float("-inf")
            scores, attn_mask = scores + attn_mask.masked_fill(~seen, 0.0), seen
        return masked_softmax(scores, attn_mask).to(dtype) @ values.to(dtype)


def _bias_dtype(values: Tensor) -> torch.dtype:
    """The kernel for CPUs takes a float32 bias beside half-precision vectors; others do not."""
    cpu = values.device.type == "cpu"
    return torch.promote_types(values.dtype, torch.float32) if cpu else values.dtype


def _sdpa(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    attn_mask: Tensor | None,
    scale: float,
    causal: bool = False,
) -> Tensor:
    """torch's kernel, which on the CPU is only quick for four axes and values as wide as keys."""
    size, value_size = keys.shape[-1], values.shape[-1]
    if size < value_size:
        queries, keys = F.pad(queries, (0, value_size - size)), F.pad(keys, (0, value_size - size))
    elif value_size < size:
        values = F.pad(values, (0, size - value_size))
    if queries.dim() == 4:
        context = F.scaled_dot_product_attention(
            queries, keys, values, attn_mask, is_causal=causal, scale=scale
        )
    else:
        if attn_mask is not None:
            attn_mask = _to_four_axes(attn_mask.expand(*queries.shape[:-2], *attn_mask.shape[-2:]))
        q, k, v = (_to_four_axes(x) for x in (queries, keys, values))
        context = F.scaled_dot_product_attention(q, k, v, attn_mask, is_causal=causal, scale=scale)
        context = context.reshape(*queries.shape[:-1], context.shape[-1])
    return context if context.shape[-1] == value_size else context[..., :value_size]


def _to_four_axes(tensor: Tensor) -> Tensor:
    """(batch, …, position, size) as (batch · …, 1, position, size)."""
    return tensor.reshape(tensor.shape[:-2].numel(), 1, *tensor.shape[-2:])
