"""The heart: a query scores keys, the scores become weights, the weights mix values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.comparisons import Comparison, InnerProduct
from regard.attention.fused import fused_context, plain_context
from regard.attention.masks import Causal, Mask, as_mask, fit
from regard.attention.picking import Rows, pick_carried, pick_rows
from regard.attention.positions import Bias
from regard.attention.scores import Prepared, Score
from regard.attention.weighings import Softmax, Weighing

BLOCK = 1 << 20
"""How many scores the explicit way makes at once where it can work row by row: 4 MB of float32."""

# Up to 128 tokens two plain products beat the fused kernel: with AVX-512 always, with AVX2 under a
# causal mask; without one the two are level there, and the kernel is the steadier of them.
# A property of the machine, not a race at run time: the same run must give the same bits.
FEW_CAUSAL = 128 * 128
FEW = FEW_CAUSAL if torch.backends.cpu.get_cpu_capability() == "AVX512" else 0
"""Scores up to which an attention without a mask is computed explicitly on a CPU."""

Selection = int | slice | list[int]
Change = Callable[[Tensor, Tensor | None], Tensor]
"""Takes weights (batch, …, query, key) and the mask; gives the weights to go on with."""


@dataclass(frozen=True)
class Attended:
    """What was read, and enough to say where, should anybody ask."""

    context: Tensor  # (batch, …, query, value)
    comparison: Comparison
    mask: Mask | None
    weigh: Weighing
    carried: Any = None
    kept: Tensor | None = None  # the weights, where they do not follow from the scores alone

    @property
    def scores(self) -> Tensor:
        """(batch, …, query, key), before the mask and the weighing."""
        return self.comparison.scores()

    @property
    def weights(self) -> Tensor:
        """(batch, …, query, key), before dropout, computed now, since now somebody asks."""
        if self.kept is not None:
            return self.kept
        queries, _ = self.comparison.sizes
        return self._weights(self.comparison, torch.arange(queries, device=self.comparison.device))

    def weights_of(
        self, *, heads: Selection | None = None, rows: Selection | None = None
    ) -> Tensor:
        """Only some heads and some queries; the axes stay.

        attended.weights_of(heads=3, rows=slice(64))  # (batch, 1, 64, key)
        """
        comparison = self.comparison
        queries, _ = comparison.sizes
        device = comparison.device
        row = chosen("rows", rows, queries, device)
        head = None
        if heads is not None:
            if comparison.axes < 4:
                raise ValueError(f"heads ({heads!r}) were asked for, but this attention has one")
            head = chosen("heads", heads, self.context.shape[-3], device)
        if self.kept is not None:
            kept = self.kept if head is None else self.kept.index_select(-3, head)
            return kept.index_select(-2, row)
        comparison = comparison if head is None else comparison.heads(head)
        return self._weights(comparison.rows(row), row, head)

    def pick(self, rows: Rows) -> Attended:
        """What some rows of the batch read, on their own; the batch axis stays.

        attended.pick(3)  # a batch of one: (1, …, query, value)
        """
        batch = self.context.shape[0] if self.comparison.axes > 2 else 0
        if self.comparison.axes < 3 or not _all_within(rows, batch):
            named = rows.tolist() if isinstance(rows, Tensor) else rows
            raise ValueError(f"rows ({named}) must lie within the batch, which has {batch} rows")
        return replace(
            self,
            context=pick_rows(self.context, rows),
            comparison=self.comparison.pick(rows),
            mask=self.mask and self.mask.pick(rows),
            carried=pick_carried(self.carried, rows, batch),
            kept=None if self.kept is None else pick_rows(self.kept, rows),
        )

    def visible(self, rows: Tensor | None = None) -> Tensor | None:
        """Where these queries might have looked, broadcast to the scores; None for anywhere."""
        return _dense(self.mask, self.comparison, rows)

    def _weights(self, comparison: Comparison, rows: Tensor, heads: Tensor | None = None) -> Tensor:
        visible = self.visible(rows)
        if heads is not None and visible is not None and visible.shape[-3] > 1:
            visible = visible.index_select(-3, heads)
        # Weighings that look at the queries keep their weights, so this one has no use for them.
        weights, _ = self.weigh(comparison.scores(), visible, self.context, self.carried)
        return weights.to(comparison.dtype)


class Attention(nn.Module):
    """context = weigh(score(queries, keys)) values

    The lineage disagrees about the score and the weighing, so both are handed in. What everybody
    uses, an inner product and a softmax, runs on torch's fused kernel; whoever wants to see the
    weights gets them from what is handed back, for the rows they look at.
    """

    def __init__(self, score: Score, weigh: Weighing | None = None, dropout: float = 0.0):
        super().__init__()
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"dropout ({dropout}) must be at least 0 and below 1")
        self.score = score
        self.weigh = Softmax() if weigh is None else weigh
        self.dropout = dropout
        self.changes: list[Change] = []
        """The seam between weigh and mix, where `edit` hangs its functions."""

    def prepare(self, keys: Tensor) -> Prepared:
        """Transform keys ahead of the first query, for decoders that come back to them."""
        return self.score.prepare(keys)

    def forward(
        self,
        queries: Tensor,
        keys: Tensor | Prepared,
        values: Tensor,
        mask: Mask | Tensor | None = None,
        carried: Any = None,
        bias: Bias | None = None,
    ) -> Attended:
        """queries (batch, …, query, size), keys (…, key, size), values (…, key, value)"""
        prepared = keys if isinstance(keys, Prepared) else self.score.prepare(keys)
        _check_shapes(queries, prepared.keys, values)
        comparison = self.score.compare(queries, prepared)
        if bias is not None:
            comparison = _biased(comparison, bias)
        if mask is not None:
            mask = as_mask(mask)
            mask.check(tuple(values.shape[:-2]), *comparison.sizes)
        if self.changes or not self.weigh.pure:
            return self._explicitly(comparison, queries, values, mask, carried)
        context = self._context(comparison, queries, values, mask)
        return Attended(context, comparison, mask, self.weigh, carried)

    def _context(
        self, comparison: Comparison, queries: Tensor, values: Tensor, mask: Mask | None
    ) -> Tensor:
        """The context alone, the quickest way there is."""
        weigh, dropping = self.weigh, self.training and self.dropout > 0.0
        if isinstance(comparison, InnerProduct) and isinstance(weigh, Softmax) and not dropping:
            way = plain_context if _few(comparison, mask) else fused_context
            return way(comparison, values, mask, weigh.sharpness)
        count, keys = comparison.sizes
        step = max(1, BLOCK // max(keys * values.shape[:-2].numel(), 1))
        if step >= count:
            return self._mix(comparison, queries, values, _dense(mask, comparison, None))
        blocks = []
        for rows in torch.arange(count, device=values.device).split(step):
            part = comparison.rows(rows)
            blocks.append(self._mix(part, queries, values, _dense(mask, comparison, rows)))
        return torch.cat(blocks, dim=-2)

    def _mix(
        self, comparison: Comparison, queries: Tensor, values: Tensor, visible: Tensor | None
    ) -> Tensor:
        weights, _ = self.weigh(comparison.scores(), visible, queries, None)
        return self._dropped(weights.to(comparison.dtype)) @ values

    def _explicitly(
        self,
        comparison: Comparison,
        queries: Tensor,
        values: Tensor,
        mask: Mask | None,
        carried: Any,
    ) -> Attended:
        """Every weight written out: for weighings with a memory, and where somebody interferes."""
        visible = _dense(mask, comparison, None)
        weights, carried = self.weigh(comparison.scores(), visible, queries, carried)
        weights = weights.to(comparison.dtype)
        for change in self.changes:
            weights = change(weights, visible)
        context = self._dropped(weights) @ values  # (batch, …, query, value)
        return Attended(context, comparison, mask, self.weigh, carried, kept=weights)

    def _dropped(self, weights: Tensor) -> Tensor:
        if self.training and self.dropout > 0.0:
            return F.dropout(weights, self.dropout)
        return weights


def _all_within(rows: Rows, count: int) -> bool:
    if isinstance(rows, Tensor):
        return bool(((rows >= 0) & (rows < count)).all())
    return isinstance(rows, slice) or 0 <= rows < count


def _few(comparison: InnerProduct, mask: Mask | None) -> bool:
    """Whether the scores are so few that plain products are the quicker way."""
    queries, keys = comparison.sizes
    if comparison.device.type != "cpu" or comparison.bias is not None:
        return False
    if mask is None:
        return queries * keys <= FEW
    return isinstance(mask, Causal) and 1 < queries == keys and queries * keys <= FEW_CAUSAL


def _dense(mask: Mask | None, comparison: Comparison, rows: Tensor | None) -> Tensor | None:
    if mask is None:
        return None
    queries, keys = comparison.sizes
    if rows is None:
        rows = torch.arange(queries, device=comparison.device)
    return fit(mask.visible(rows, queries, keys), comparison.axes)


def _biased(comparison: Comparison, bias: Bias) -> InnerProduct:
    if not isinstance(comparison, InnerProduct):
        raise ValueError(
            f"bias ({type(bias).__name__}) needs a score that is an inner product, "
            f"got {type(comparison).__name__}"
        )
    heads, (queries, keys) = bias.by_distance.shape[0], comparison.sizes
    there = comparison.queries.shape[-3] if comparison.axes >= 4 else None
    if there != heads or len(bias.places) != queries or bias.keys != keys:
        raise ValueError(
            f"bias is for {heads} heads, {len(bias.places)} queries and {bias.keys} keys, but the "
            f"scores have {there or 'no'} heads, {queries} queries and {keys} keys"
        )
    return InnerProduct(comparison.queries, comparison.keys, comparison.scale, bias)


def chosen(name: str, selection: Selection | None, count: int, device: torch.device) -> Tensor:
    """A selection as the tensor of its indices."""
    every = torch.arange(count, device=device)
    if selection is None:
        return every
    try:
        return every[selection].reshape(-1)
    except (IndexError, TypeError):
        reason = f"must lie within 0 … {count - 1}"
        if not isinstance(selection, int | slice | list):
            reason = "must be a number, a slice or a list of numbers"
        raise ValueError(f"{name} ({selection!r}) {reason}") from None


def _check_shapes(queries: Tensor, keys: Tensor, values: Tensor) -> None:
    for name, tensor in (("queries", queries), ("keys", keys), ("values", values)):
        if tensor.dim() < 2:
            raise ValueError(f"{name} {tuple(tensor.shape)} must be (…, position, size)")
        if not tensor.is_floating_point():
            raise ValueError(f"{name} ({tensor.dtype}) must be floating-point numbers")
    kinds = {queries.dtype, keys.dtype, values.dtype}
    if len(kinds) > 1 and not torch.is_autocast_enabled(values.device.type):
        raise ValueError(
            f"queries ({queries.dtype}), keys ({keys.dtype}) and values ({values.dtype}) must be "
            "numbers of one precision"
        )
    if keys.shape[:-1] != values.shape[:-1]:
        raise ValueError(
            f"keys {tuple(keys.shape)} and values {tuple(values.shape)} must agree in all but the "
            "last axis: each key has its value"
        )
    if queries.shape[:-2] != keys.shape[:-2]:
        raise ValueError(
            f"queries {tuple(queries.shape)} and keys {tuple(keys.shape)} must agree in their "
            "leading axes (batch, head)"
        )
