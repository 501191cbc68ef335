"""Where a look has its numbers from: a tensor, one call of an attention, or several.

All are (head, query, key) of one row of the batch, and compute what is asked for and no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.attended import Attended
from regard.attention.comparisons import InnerProduct
from regard.attention.masks import Causal


class LookSource(Protocol):
    """Where a look has its numbers from."""

    def weights(self, heads: Tensor | None, rows: Tensor | None) -> Tensor:
        """(head, query, key) for some heads and rows, or for all."""

    def mask(self, rows: Tensor | None) -> Tensor | None:
        """Boolean, broadcast to (head, row, key), True = may look."""


@dataclass(frozen=True)
class StoredWeights:
    """Weights at hand as a tensor."""

    table: Tensor  # (head, query, key)
    allowed: Tensor | None

    def weights(self, heads: Tensor | None, rows: Tensor | None) -> Tensor:
        table = self.table if heads is None else self.table.index_select(0, heads)
        return table if rows is None else table.index_select(1, rows)

    def mask(self, rows: Tensor | None) -> Tensor | None:
        if self.allowed is None or rows is None or self.allowed.shape[1] == 1:
            return self.allowed
        return self.allowed.index_select(1, rows)


@dataclass(frozen=True)
class ComputedWeights:
    """Weights computed on demand for one row of the batch."""

    attended: Attended

    @classmethod
    def of(cls, attended: Attended, row: int) -> ComputedWeights:
        axes = attended.comparison.axes
        if axes > 4:
            raise ValueError(f"a look needs weights ([batch, [head,]] query, key), not {axes} axes")
        return cls(attended if axes == 2 else attended.pick(row))

    @property
    def heads(self) -> int:
        return self.attended.context.shape[1] if self.attended.comparison.axes == 4 else 1

    @property
    def queries(self) -> int:
        return self.attended.comparison.sizes[0]

    @property
    def keys(self) -> int:
        return self.attended.comparison.sizes[1]

    def weights(self, heads: Tensor | None, rows: Tensor | None) -> Tensor:
        has_heads = self.attended.comparison.axes == 4
        weights = self.attended.weights_of(
            heads=heads.tolist() if has_heads and heads is not None else None,
            rows=None if rows is None else rows.tolist(),
        )
        return _to_three_axes(weights.detach().to("cpu", torch.float32))

    def mask(self, rows: Tensor | None) -> Tensor | None:
        if rows is not None:
            rows = rows.to(self.attended.comparison.device)
        visible = self.attended.visible(rows)
        return None if visible is None else _to_three_axes(visible.cpu())


@dataclass(frozen=True)
class StitchedWeights:
    """The rows of several calls below one another; each call has its own keys among all."""

    parts: tuple[ComputedWeights, ...]
    first_keys: tuple[int, ...]  # of each call: which key is its first
    keys: int

    @classmethod
    def of(
        cls,
        calls: Sequence[Attended],
        row: int = 0,
        first_keys: Sequence[int] | None = None,
        keys: int | None = None,
    ) -> StitchedWeights:
        if not calls:
            raise ValueError("calls is empty: nothing was looked at")
        parts = tuple(ComputedWeights.of(attended, row) for attended in calls)
        begins = (0,) * len(parts) if first_keys is None else tuple(first_keys)
        made = cls(parts, begins, 0)
        return replace(made, keys=made.reach if keys is None else keys)

    @property
    def reach(self) -> int:
        """How many keys there are up to the last of any call."""
        return max(
            first + part.keys for first, part in zip(self.first_keys, self.parts, strict=True)
        )

    @property
    def heads(self) -> int:
        return self.parts[0].heads

    @property
    def queries(self) -> int:
        return sum(part.queries for part in self.parts)

    def weights(self, heads: Tensor | None, rows: Tensor | None) -> Tensor:
        count = self.heads if heads is None else len(heads)
        pieces = [torch.zeros(count, 0, self.keys)]
        for at, own in self._split(rows):
            pieces.append(self._widen(self.parts[at].weights(heads, own), at))
        return torch.cat(pieces, dim=-2)

    def mask(self, rows: Tensor | None) -> Tensor | None:
        whole = all(part.keys == self.keys for part in self.parts)
        if whole and all(part.attended.mask is None for part in self.parts):
            return None
        pieces = [self._widen(self._mask_part(at, own), at) for at, own in self._split(rows)]
        if not pieces:
            return torch.zeros(1, 0, self.keys, dtype=torch.bool)
        heads = max(len(piece) for piece in pieces)
        return torch.cat([piece.expand(heads, -1, -1) for piece in pieces], dim=-2)

    def merge(self) -> Attended | None:
        """All steps as one causal attention; None unless each went on from the keys before it."""
        calls, end = [part.attended for part in self.parts], 0
        last = calls[-1]
        for call, first in zip(calls, self.first_keys, strict=True):
            end += call.comparison.sizes[0]
            if first or call.comparison.sizes[1] != end or not _continues(call, last):
                return None
        if end != self.keys or not isinstance(last.comparison, InnerProduct):
            return None
        comparisons = [call.comparison for call in calls]
        queries = torch.cat([c.queries for c in comparisons if isinstance(c, InnerProduct)], dim=-2)
        context = torch.cat([call.context for call in calls], dim=-2)
        return replace(
            last,
            context=context,
            comparison=replace(last.comparison, queries=queries),
            mask=Causal(),
        )

    def _mask_part(self, at: int, rows: Tensor) -> Tensor:
        visible = self.parts[at].mask(rows)
        if visible is None:
            return torch.ones(1, len(rows), self.parts[at].keys, dtype=torch.bool)
        return visible.expand(-1, len(rows), self.parts[at].keys)

    def _split(self, rows: Tensor | None) -> Iterator[tuple[int, Tensor]]:
        """Which call these rows are of, and their numbers in it; neighbours come together."""
        owners = [(at, own) for at, part in enumerate(self.parts) for own in range(part.queries)]
        wanted = owners if rows is None else [owners[row] for row in rows.tolist()]
        for at, together in groupby(wanted, key=itemgetter(0)):
            yield at, torch.tensor([own for _, own in together])

    def _widen(self, table: Tensor, at: int) -> Tensor:
        """The keys of a call at their place among all; nothing beside them."""
        first = self.first_keys[at]
        return F.pad(table, (first, self.keys - first - table.shape[-1]))


def _continues(call: Attended, last: Attended) -> bool:
    """Whether a causal call had the first of the keys that the last call has."""
    one, other = call.comparison, last.comparison
    if not isinstance(one, InnerProduct) or not isinstance(other, InnerProduct):
        return False
    alike = (one.scale, one.bias) == (other.scale, None) and call.weigh is last.weigh
    pure = call.stored_weights is None and type(call.mask) is Causal
    return alike and pure and torch.equal(one.keys, other.keys[..., : one.sizes[1], :])


def stitch(calls: Sequence[Attended], row: int = 0) -> Tensor:
    """One map from the steps of a decoder: (head, query, key), shorter rows padded with zeros, as
    in a self-attention whose keys grow."""
    return StitchedWeights.of(calls, row).weights(None, None)


def _to_three_axes(table: Tensor) -> Tensor:
    """(1, head, query, key), (1, query, key) or (query, key) as (head, query, key)."""
    if table.dim() == 4:
        return table.squeeze(0)
    return table if table.dim() == 3 else table.unsqueeze(0)
