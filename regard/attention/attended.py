"""What an attention returns: its context at once, its weights on demand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from regard.attention.comparisons import Comparison
from regard.attention.dropout import drop
from regard.attention.masks import Mask, fit
from regard.attention.picking import Rows, detach_carried, pick_carried, pick_rows
from regard.attention.recording import ActiveCall
from regard.attention.weighings import Weighing

Selection = int | slice | list[int]


@dataclass(frozen=True)
class Attended:
    """The result of an attention: its context at once, its weights on demand."""

    context: Tensor  # (batch, …, query, value)
    comparison: Comparison
    mask: Mask | None
    weigh: Weighing
    carried: Any = None
    stored_weights: Tensor | None = None  # where they do not follow from the scores alone
    stored_heads: tuple[int, ...] | None = None  # whose weights are stored; None for all
    first_row: int = 0  # the position of the first query in its sequence, if it was watched
    one_sequence: bool | None = None  # whether keys are of the queries' sequence, if known

    @property
    def scores(self) -> Tensor:
        """(batch, …, query, key), before the mask and the weighing."""
        return self.comparison.scores()

    @property
    def weights(self) -> Tensor:
        """(batch, …, query, key), before dropout, computed when asked for."""
        if self.stored_weights is not None and self.stored_heads is None:
            return self.stored_weights
        rows = torch.arange(self.comparison.sizes[0], device=self.comparison.device)
        return self._compute_weights(self.comparison, rows)

    def weights_of(
        self, *, heads: Selection | None = None, rows: Selection | None = None
    ) -> Tensor:
        """Only some heads and some queries; the axes stay.

        attended.weights_of(heads=3, rows=slice(64))  # (batch, 1, 64, key)
        """
        comparison = self.comparison
        queries, _ = comparison.sizes
        device = comparison.device
        row = select_indices("rows", rows, queries, device)
        head = None
        if heads is not None:
            if comparison.axes < 4:
                raise ValueError(f"heads ({heads!r}) were asked for, but this attention has one")
            head = select_indices("heads", heads, self.context.shape[-3], device)
        if self.stored_weights is not None and self.stored_heads is None:
            weights = self.stored_weights
            weights = weights if head is None else weights.index_select(-3, head)
            return weights.index_select(-2, row)
        comparison = comparison if head is None else comparison.heads(head)
        return self._compute_weights(comparison.rows(row), row, head)

    def pick(self, rows: Rows) -> Attended:
        """What some rows of the batch read, on their own; the batch axis stays.

        attended.pick(3)  # a batch of one: (1, …, query, value)
        """
        batch = self.context.shape[0] if self.comparison.axes > 2 else 0
        if self.comparison.axes < 3 or not _all_in_batch(rows, batch):
            named = rows.tolist() if isinstance(rows, Tensor) else rows
            raise ValueError(f"rows ({named}) must lie within the batch, which has {batch} rows")
        stored = self.stored_weights
        return replace(
            self,
            context=pick_rows(self.context, rows),
            comparison=self.comparison.pick(rows),
            mask=self.mask and self.mask.pick(rows),
            carried=pick_carried(self.carried, rows, batch),
            stored_weights=None if stored is None else pick_rows(stored, rows),
        )

    def detach(self) -> Attended:
        """The same without its graph: nothing of the backward pass is held."""
        stored = self.stored_weights
        return replace(
            self,
            context=self.context.detach(),
            comparison=self.comparison.detach(),
            carried=detach_carried(self.carried),
            stored_weights=None if stored is None else stored.detach(),
        )

    def keep(self, rows: range, one_sequence: bool) -> Attended:
        """What a record holds of it: enough for every weight, and the context's shape alone.

        Queries, keys and values are often slices of one product. To hold two of them would hold
        the third, so they are copied, unless a graph holds them anyway.
        """
        return replace(
            self,
            context=self.context.detach().to("meta"),
            comparison=self.comparison.compact(),
            first_row=rows.start,
            one_sequence=one_sequence,
        )

    def visible(self, rows: Tensor | None = None) -> Tensor | None:
        """Where these queries might have looked, broadcast to the scores; None for anywhere."""
        return to_dense(self.mask, self.comparison, rows)

    def _compute_weights(
        self, comparison: Comparison, rows: Tensor, heads: Tensor | None = None
    ) -> Tensor:
        visible = self.visible(rows)
        if heads is not None and visible is not None and visible.shape[-3] > 1:
            visible = visible.index_select(-3, heads)
        # Weighings that look at the queries store their weights, so this one has no use for them.
        weights, _ = self.weigh(comparison.scores(), visible, self.context, self.carried)
        weights = weights.to(comparison.dtype)
        if self.stored_weights is None or self.stored_heads is None:
            return weights
        stored = self.stored_weights.index_select(-2, rows)
        asked = range(weights.shape[-3]) if heads is None else heads.tolist()
        return torch.stack(
            [
                stored.select(-3, self.stored_heads.index(head))
                if head in self.stored_heads
                else weights.select(-3, place)
                for place, head in enumerate(asked)
            ],
            dim=-3,
        )


def change_heads(
    attended: Attended, values: Tensor, heads: list[int], call: ActiveCall, dropout: float
) -> Attended:
    """The result with the weights of some heads changed, and what these heads read; the others
    keep what the kernel gave them."""
    index = torch.tensor(heads, device=values.device)
    visible = attended.visible()
    if visible is not None and visible.shape[-3] > 1:
        visible = visible.index_select(-3, index)
    weights = attended.weights_of(heads=heads)  # (batch, head, query, key)
    weights = call.change(weights, visible, heads, values.shape[-3])
    mixed = drop(weights, dropout) @ values.index_select(-3, index)
    context = attended.context.index_copy(-3, index, mixed.to(attended.context.dtype))
    return replace(attended, context=context, stored_weights=weights, stored_heads=tuple(heads))


def to_dense(mask: Mask | None, comparison: Comparison, rows: Tensor | None) -> Tensor | None:
    """Where these queries may look, all of them if `rows` is None; None for everywhere."""
    if mask is None:
        return None
    queries, keys = comparison.sizes
    if rows is None:
        rows = torch.arange(queries, device=comparison.device)
    return fit(mask.visible(rows, queries, keys), comparison.axes)


def select_indices(
    name: str, selection: Selection | None, count: int, device: torch.device
) -> Tensor:
    """The indices that a selection means, as a tensor."""
    indices = torch.arange(count, device=device)
    if selection is None:
        return indices
    try:
        return indices[selection].reshape(-1)
    except (IndexError, TypeError):
        reason = f"must lie within 0 … {count - 1}"
        if not isinstance(selection, int | slice | list):
            reason = "must be a number, a slice or a list of numbers"
        raise ValueError(f"{name} ({selection!r}) {reason}") from None


def _all_in_batch(rows: Rows, count: int) -> bool:
    if isinstance(rows, Tensor):
        return bool(((rows >= 0) & (rows < count)).all())
    return isinstance(rows, slice) or 0 <= rows < count
