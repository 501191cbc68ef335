"""v · tanh(q + k) for all pairs, without ever holding (query, key, hidden).

Two things make it fast. The pairs are worked through in tiles that fit the cache, and the
backward pass makes each tile anew. And since

    tanh(a + b) = 1 − 2 r,   r = 1 / (1 + e²ᵃ e²ᵇ),

the exponentials are taken once for each query and each key; a pair costs a product and a reciprocal
instead of a tanh. A decoder that comes back to its keys takes theirs once for all steps. The
gradient needs only r as well: d tanh(x) / dx = 4 r (1 − r).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from regard.attention.precision import at_least_single, without_autocast

TILE_NUMEL = 1 << 19
"""Numbers in a tile: two megabytes of float32, which stay in the cache."""

MAX_EXPONENT_SHARE = 0.45
"""How large a vector's numbers may be for e²ᵃ, as a share of what an exponential can hold."""

Tile = tuple[slice, slice, slice]


def additive_scores(
    queries: Tensor, keys: Tensor, direction: Tensor, exponentials: Tensor | None = None
) -> Tensor:
    """score[i, j] = v · tanh(qᵢ + kⱼ)

    queries (batch, …, query, hidden), keys (batch, …, key, hidden), direction (hidden,)
    → (batch, …, query, key), in memory O(query × key). `exponentials` are those of the keys, if
    `key_exponentials` has taken them before; gradients go to the keys all the same.
    """
    dtype = torch.promote_types(queries.dtype, keys.dtype)
    # Half precision is too coarse for exponentials; the products are small, so nothing is lost.
    compute_dtype = torch.promote_types(dtype, torch.float32)
    if exponentials is None or exponentials.dtype != compute_dtype:
        exponentials = key_exponentials(keys.to(compute_dtype))
    if exponentials is not None:
        exponentials = _flatten_leading(exponentials)
    q, k = (_flatten_leading(x).to(compute_dtype) for x in (queries, keys))
    v = direction.to(compute_dtype)
    with without_autocast(queries.device):  # tiles are written into tensors of one precision
        scores = _AdditiveScores.apply(q, k, v, exponentials)  # type: ignore[no-untyped-call]
    return scores.view(*queries.shape[:-1], keys.shape[-2]).to(dtype)


@torch.no_grad()
def key_exponentials(keys: Tensor) -> Tensor | None:
    """e²ᵏ, in float32 or better; None where a key is too large for it."""
    keys = at_least_single(keys)
    return (2 * keys).exp_() if _in_range(keys) else None


class _AdditiveScores(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, keys: Tensor, direction: Tensor, exponentials: Tensor | None
    ) -> Tensor:
        ctx.save_for_backward(queries, keys, direction, exponentials)
        scores = queries.new_empty(*queries.shape[:-1], keys.shape[-2])
        ratio = _Ratio(queries, keys, exponentials)
        total = direction.sum()
        for batch, row, column in _tiles(queries, keys):
            weighted = ratio(batch, row, column) @ direction  # (batch, query, key)
            torch.sub(total, weighted, alpha=2, out=scores[batch, row, column])
        return scores

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_scores: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        queries, keys, direction, exponentials = ctx.saved_tensors
        with without_autocast(queries.device):
            ratio = _Ratio(queries, keys, exponentials)
            return *_gradients(queries, keys, direction, ratio, grad_scores), None


def _gradients(
    queries: Tensor, keys: Tensor, direction: Tensor, ratio: _Ratio, grad_scores: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    grad_queries, grad_keys = torch.zeros_like(queries), torch.zeros_like(keys)
    grad_dot_r = torch.zeros_like(direction)  # Σ grad_scores · r, what v's gradient lacks
    for batch, row, column in _tiles(queries, keys):
        r = ratio(batch, row, column)  # (batch, query, key, hidden)
        grad = grad_scores[batch, row, column].unsqueeze(-1)  # (batch, query, key, 1)
        weighted = grad.mT @ r  # (batch, query, 1, hidden)
        grad_dot_r += weighted.sum(dim=(0, 1, 2))
        slope = r.addcmul_(r, r, value=-1).mul_(grad)  # grad_scores · r (1 − r)
        grad_queries[batch, row] += slope.sum(dim=2)
        grad_keys[batch, column] += slope.sum(dim=1)
    factor = 4 * direction
    grad_direction = grad_scores.sum() - 2 * grad_dot_r
    return grad_queries.mul_(factor), grad_keys.mul_(factor), grad_direction


class _Ratio:
    """r = 1 / (1 + e²ᵃ e²ᵇ) for any tile of pairs."""

    def __init__(self, queries: Tensor, keys: Tensor, exponentials: Tensor | None):
        self.queries, self.keys = queries, keys
        self.factored = exponentials is not None and _in_range(queries)
        if exponentials is not None and self.factored:
            self.queries, self.keys = (2 * queries).exp_(), exponentials
        self.one = queries.new_ones(())
        # One piece of memory for all tiles: fresh pages for each would cost more than the numbers.
        self.scratch = queries.new_empty(0)

    def __call__(self, batch: slice, row: slice, column: slice) -> Tensor:
        a = self.queries[batch, row].unsqueeze(2)  # (batch, query, 1, hidden)
        b = self.keys[batch, column].unsqueeze(1)  # (batch, 1, key, hidden)
        shape = (a.shape[0], a.shape[1], b.shape[2], a.shape[3])
        numel = math.prod(shape)
        if self.scratch.numel() < numel:
            self.scratch = a.new_empty(numel)
        tile = self.scratch[:numel].view(shape)  # (batch, query, key, hidden)
        if self.factored:
            return torch.addcmul(self.one, a, b, out=tile).reciprocal_()
        return torch.add(a, b, out=tile).mul_(-2).sigmoid_()


def _in_range(vectors: Tensor) -> bool:
    """Whether e²ᵃ neither overflows nor vanishes. The product of two such may do either: r is then
    0 or 1, as it should be. Beyond, the sum is taken before the exponential."""
    largest = MAX_EXPONENT_SHARE * math.log(torch.finfo(vectors.dtype).max)
    return vectors.numel() == 0 or bool(vectors.abs().amax() < largest)


def _flatten_leading(tensor: Tensor) -> Tensor:
    return tensor.reshape(tensor.shape[:-2].numel(), *tensor.shape[-2:])


def _tiles(queries: Tensor, keys: Tensor) -> Iterator[Tile]:
    """Cut batch × query × key into tiles of about TILE_NUMEL numbers, keys first."""
    batch, rows, hidden_size = queries.shape
    columns = keys.shape[1]
    column_step = max(1, min(columns, TILE_NUMEL // max(hidden_size, 1)))
    row_step = max(1, min(rows, TILE_NUMEL // max(column_step * hidden_size, 1)))
    batch_step = max(1, TILE_NUMEL // max(row_step * column_step * hidden_size, 1))
    for b in range(0, batch, batch_step):
        for i in range(0, rows, row_step):
            for j in range(0, columns, column_step):
                yield slice(b, b + batch_step), slice(i, i + row_step), slice(j, j + column_step)
