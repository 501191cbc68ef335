"""Queries and keys ready to be scored: for all rows, or a few.

A comparison holds tensors that were computed from the parameters, never the parameters: asked after
an optimizer step, it still tells what was seen before the step.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol, Self

import torch
from torch import Tensor

from regard.attention.additive import additive_scores
from regard.attention.picking import Rows, pick_rows
from regard.attention.positions import Bias
from regard.attention.precision import at_least_single, without_autocast


class Comparison(Protocol):
    """What a score returns: scores that are computed when asked for, whole or in part."""

    @property
    def sizes(self) -> tuple[int, int]:
        """How many queries, how many keys."""

    @property
    def axes(self) -> int:
        """How many axes the scores have."""

    @property
    def device(self) -> torch.device: ...

    @property
    def dtype(self) -> torch.dtype:
        """Of queries and keys, and so of the weights; scores may have more digits."""

    def scores(self) -> Tensor:
        """(batch, …, query, key)"""

    def rows(self, rows: Tensor) -> Comparison:
        """The same for the queries numbered `rows` only."""

    def heads(self, heads: Tensor) -> Comparison:
        """The same for the heads numbered `heads` only; heads are the axis before the queries."""

    def pick(self, rows: Rows) -> Comparison:
        """The same for some rows of the batch only."""

    def detach(self) -> Comparison:
        """The same without its graph."""

    def compact(self) -> Comparison:
        """The same, holding no larger tensor than it needs."""


@dataclass(frozen=True)
class _VectorComparison:
    """Scores that are a function of transformed queries and keys."""

    queries: Tensor  # (batch, …, query, size)
    keys: Tensor  # (batch, …, key, size)

    @property
    def sizes(self) -> tuple[int, int]:
        return self.queries.shape[-2], self.keys.shape[-2]

    @property
    def axes(self) -> int:
        return self.queries.dim()

    @property
    def device(self) -> torch.device:
        return self.queries.device

    @property
    def dtype(self) -> torch.dtype:
        return torch.promote_types(self.queries.dtype, self.keys.dtype)

    def rows(self, rows: Tensor) -> Self:
        return replace(self, queries=self.queries.index_select(-2, rows))

    def heads(self, heads: Tensor) -> Self:
        queries, keys = (x.index_select(-3, heads) for x in (self.queries, self.keys))
        return replace(self, queries=queries, keys=keys)

    def pick(self, rows: Rows) -> Self:
        queries, keys = (pick_rows(x, rows) for x in (self.queries, self.keys))
        return replace(self, queries=queries, keys=keys)

    def detach(self) -> Self:
        return replace(self, queries=self.queries.detach(), keys=self.keys.detach())

    def compact(self) -> Self:
        # Keys of a cache are a slice of it, and all steps share it: they are left where they are.
        # Those that lie in one store with the queries are a slice of one product.
        queries, keys = self.queries, self.keys
        together = queries.untyped_storage().data_ptr() == keys.untyped_storage().data_ptr()
        if together and queries is not keys:
            keys = _copy_slice(keys)
        return replace(self, queries=_copy_slice(queries), keys=keys)


@dataclass(frozen=True)
class InnerProduct(_VectorComparison):
    """score = scale · (q · k) + bias"""

    scale: float = 1.0
    bias: Bias | None = None

    def scores(self) -> Tensor:
        # In half precision a large score overflows, and a softmax over it is NaN. The fused kernel
        # sums in float32, and so does this.
        queries, keys = at_least_single(self.queries), at_least_single(self.keys)
        with without_autocast(self.device):
            queries = queries if self.scale == 1.0 else queries * self.scale
            scores = queries @ keys.mT  # (batch, …, query, key)
        return scores if self.bias is None else scores + self.bias.table()

    def rows(self, rows: Tensor) -> Self:
        return replace(super().rows(rows), bias=self.bias and self.bias.rows(rows))

    def heads(self, heads: Tensor) -> Self:
        return replace(super().heads(heads), bias=self.bias and self.bias.heads(heads))

    def detach(self) -> Self:
        return replace(super().detach(), bias=self.bias and self.bias.detach())


@dataclass(frozen=True)
class TanhSum(_VectorComparison):
    """score = v · tanh(q + k)"""

    exponentials: Tensor | None = None  # (batch, …, key, size), e²ᵏ, where they have been taken
    direction: Tensor = field(kw_only=True)  # (size,), v as it was

    def scores(self) -> Tensor:  # (batch, …, query, key)
        return additive_scores(self.queries, self.keys, self.direction, self.exponentials)

    def heads(self, heads: Tensor) -> TanhSum:
        exponentials = self.exponentials
        if exponentials is not None:
            exponentials = exponentials.index_select(-3, heads)
        return replace(super().heads(heads), exponentials=exponentials)

    def pick(self, rows: Rows) -> TanhSum:
        exponentials = self.exponentials
        if exponentials is not None:
            exponentials = pick_rows(exponentials, rows)
        return replace(super().pick(rows), exponentials=exponentials)

    def detach(self) -> TanhSum:
        exponentials = None if self.exponentials is None else self.exponentials.detach()
        direction = self.direction.detach()
        return replace(super().detach(), direction=direction, exponentials=exponentials)


@dataclass(frozen=True)
class Table:
    """Scores at hand as a tensor."""

    table: Tensor  # (batch, …, query, key)

    @property
    def sizes(self) -> tuple[int, int]:
        return self.table.shape[-2], self.table.shape[-1]

    @property
    def axes(self) -> int:
        return self.table.dim()

    @property
    def device(self) -> torch.device:
        return self.table.device

    @property
    def dtype(self) -> torch.dtype:
        return self.table.dtype

    def scores(self) -> Tensor:
        return self.table

    def rows(self, rows: Tensor) -> Table:
        return Table(self.table.index_select(-2, rows))

    def heads(self, heads: Tensor) -> Table:
        return Table(self.table.index_select(-3, heads))

    def pick(self, rows: Rows) -> Table:
        return Table(pick_rows(self.table, rows))

    def detach(self) -> Table:
        return Table(self.table.detach())

    def compact(self) -> Table:
        return Table(_copy_slice(self.table))


def _copy_slice(tensor: Tensor) -> Tensor:
    """A copy of what is a slice of a larger tensor; itself if a graph holds that tensor anyway."""
    whole = tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
    return tensor if whole or tensor.requires_grad else tensor.clone()
