"""v · tanh(q + k) for all pairs, without ever holding (query, key, hidden).

Two thoughts make it quick. The pairs are worked through in tiles that fit the cache, and the
backward pass makes each tile anew. And since

    tanh(a + b) = 1 − 2 r,   r = 1 / (1 + e²ᵃ e²ᵇ),

the exponentials are taken once for each query and each key; a pair costs a product and a reciprocal
instead of a tanh. The gradient needs only r as well: d tanh(x) / dx = 4 r (1 − r).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

TILE = 1 << 19
"""Numbers in a tile: two megabytes of float32, which stay in the cache."""

Tile = tuple[slice, slice, slice]


def additive_scores(queries: Tensor, keys: Tensor, direction: Tensor) -> Tensor:
    """score[i, j] = v · tanh(qᵢ + kⱼ)

    queries (batch, …, query, hidden), keys (batch, …, key, hidden), direction (hidden,)
    → (batch, …, query, key), in memory O(query × key).
    """
    dtype = torch.promote_types(queries.dtype, keys.dtype)
    # Half precision is too coarse for exponentials; the products are small, so nothing is lost.
    exact = torch.promote_types(dtype, torch.float32)
    q, k, v = _flat(queries).to(exact), _flat(keys).to(exact), direction.to(exact)
    with _as_it_is(queries.device):
        scores = _AdditiveScores.apply(q, k, v)  # type: ignore[no-untyped-call]
    return scores.view(*queries.shape[:-1], keys.shape[-2]).to(dtype)


class _AdditiveScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, direction: Tensor) -> Tensor:
        ctx.save_for_backward(queries, keys, direction)
        scores = queries.new_empty(*queries.shape[:-1], keys.shape[-2])
        ratio = _Ratio(queries, keys)
        total = direction.sum()
        for batch, row, column in _tiles(queries, keys):
            weighted = ratio(batch, row, column) @ direction  # (batch, query, key)
            torch.sub(total, weighted, alpha=2, out=scores[batch, row, column])
        return scores

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, direction = ctx.saved_tensors
        with _as_it_is(queries.device):
            return _gradients(queries, keys, direction, upstream)


def _gradients(
    queries: Tensor, keys: Tensor, direction: Tensor, upstream: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    to_queries, to_keys = torch.zeros_like(queries), torch.zeros_like(keys)
    ratio = _Ratio(queries, keys)
    seen = torch.zeros_like(direction)  # Σ upstream · r, what v's gradient lacks
    for batch, row, column in _tiles(queries, keys):
        r = ratio(batch, row, column)  # (batch, query, key, hidden)
        arriving = upstream[batch, row, column].unsqueeze(-1)  # (batch, query, key, 1)
        weighted = arriving.mT @ r  # (batch, query, 1, hidden)
        seen += weighted.sum(dim=(0, 1, 2))
        slope = r.addcmul_(r, r, value=-1).mul_(arriving)  # upstream · r (1 − r)
        to_queries[batch, row] += slope.sum(dim=2)
        to_keys[batch, column] += slope.sum(dim=1)
    steepness = 4 * direction
    to_direction = upstream.sum() - 2 * seen
    return to_queries.mul_(steepness), to_keys.mul_(steepness), to_direction


class _Ratio:
    """r = 1 / (1 + e²ᵃ e²ᵇ) for any tile of pairs."""

    def __init__(self, queries: Tensor, keys: Tensor):
        self.queries, self.keys = queries, keys
        # Within these bounds neither factor overflows or vanishes, and the product may do either:
        # r is then 0 or 1, as it should be. Outside, the sum is taken before the exponential.
        largest = 0.45 * math.log(torch.finfo(queries.dtype).max)
        self.factored = _within(queries, largest) and _within(keys, largest)
        if self.factored:
            self.queries, self.keys = (2 * queries).exp_(), (2 * keys).exp_()
        self.one = queries.new_ones(())
        # One piece of memory for all tiles: fresh pages for each would cost more than the numbers.
        self.scratch = queries.new_empty(0)

    def __call__(self, batch: slice, row: slice, column: slice) -> Tensor:
        a = self.queries[batch, row].unsqueeze(2)  # (batch, query, 1, hidden)
        b = self.keys[batch, column].unsqueeze(1)  # (batch, 1, key, hidden)
        shape = (a.shape[0], a.shape[1], b.shape[2], a.shape[3])
        numbers = math.prod(shape)
        if self.scratch.numel() < numbers:
            self.scratch = a.new_empty(numbers)
        tile = self.scratch[:numbers].view(shape)  # (batch, query, key, hidden)
        if self.factored:
            return torch.addcmul(self.one, a, b, out=tile).reciprocal_()
        return torch.add(a, b, out=tile).mul_(-2).sigmoid_()


def _as_it_is(device: torch.device) -> torch.autocast:
    """Autocast off: the tiles are written into tensors of one precision."""
    return torch.autocast(device.type, enabled=False)


def _within(tensor: Tensor, largest: float) -> bool:
    return tensor.numel() == 0 or bool(tensor.abs().amax() < largest)


def _flat(tensor: Tensor) -> Tensor:
    return tensor.reshape(tensor.shape[:-2].numel(), *tensor.shape[-2:])


def _tiles(queries: Tensor, keys: Tensor) -> Iterator[Tile]:
    """Cut batch × query × key into tiles of about TILE numbers, keys first."""
    batch, rows, hidden_size = queries.shape
    columns = keys.shape[1]
    column_step = max(1, min(columns, TILE // max(hidden_size, 1)))
    row_step = max(1, min(rows, TILE // max(column_step * hidden_size, 1)))
    batch_step = max(1, TILE // max(row_step * column_step * hidden_size, 1))
    for b in range(0, batch, batch_step):
        for i in range(0, rows, row_step):
            for j in range(0, columns, column_step):
                yield slice(b, b + batch_step), slice(i, i + row_step), slice(j, j + column_step)
