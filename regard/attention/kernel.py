"""What torch's kernel is given in other people's modules, in our words: scores and masks.

Groups of heads may share their keys, a mask may be a table of numbers that are added, and
`is_causal` counts from the first key, not from the last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from regard.attention.comparisons import InnerProduct
from regard.attention.masks import Dense, Mask
from regard.attention.picking import Rows, pick_rows


@dataclass(frozen=True)
class GroupedProduct(InnerProduct):
    """score = scale · (q · k) + added, where groups of heads may share their keys

    Ainslie et al. (2023), section 2.2.
    """

    added: Tensor | None = None  # broadcast to (batch, head, query, key)

    @property
    def group(self) -> int:
        """How many heads share a key."""
        return self.queries.shape[-3] // self.keys.shape[-3] if self.axes >= 4 else 1

    def scores(self) -> Tensor:
        if self.group > 1:
            keys = self.keys.repeat_interleave(self.group, dim=-3)
            return replace(self, keys=keys).scores()
        scores = super().scores()  # (batch, head, query, key)
        return scores if self.added is None else scores + self.added

    def rows(self, rows: Tensor) -> Self:
        return replace(super().rows(rows), added=_select(self.added, -2, rows))

    def heads(self, heads: Tensor) -> Self:
        return replace(
            self,
            queries=self.queries.index_select(-3, heads),
            keys=self.keys.index_select(-3, heads // self.group),
            added=_select(self.added, -3, heads),
        )

    def pick(self, rows: Rows) -> Self:
        added = self.added
        if added is not None and added.dim() == self.axes and added.shape[0] > 1:
            added = pick_rows(added, rows)
        return replace(super().pick(rows), added=added)

    def detach(self) -> Self:
        added = None if self.added is None else self.added.detach()
        return replace(super().detach(), added=added)


class TopLeftCausal(Mask):
    """Query i sees keys 0 … i, also where there are more keys than queries: torch's `is_causal`."""

    def visible(self, rows: Tensor, queries: int, keys: int) -> Tensor:
        return (torch.arange(keys, device=rows.device) <= rows.unsqueeze(-1)).unsqueeze(0)


class AdditiveMask(Mask):
    """What a mask of numbers lets a query see: where it adds neither −∞ nor the lowest number.

    A row of lowest numbers alone hides nothing, since a softmax does not know them from zeros.
    """

    def __init__(self, added: Tensor):
        self.added = added

    def visible(self, rows: Tensor, queries: int, keys: int) -> Tensor:
        added = self.added if self.added.shape[-2] == 1 else self.added.index_select(-2, rows)
        lowest = torch.finfo(added.dtype).min
        hides_all = (added == lowest).all(dim=-1, keepdim=True)
        visible = (added > lowest) | hides_all
        return visible if visible.dim() > 2 else visible.unsqueeze(0)

    def pick(self, rows: Rows) -> AdditiveMask:
        alike = self.added.dim() < 3 or self.added.shape[0] == 1
        return self if alike else AdditiveMask(pick_rows(self.added, rows))


def _select(tensor: Tensor | None, axis: int, index: Tensor) -> Tensor | None:
    """Along an axis that is not broadcast."""
    if tensor is None or tensor.dim() < -axis or tensor.shape[axis] == 1:
        return tensor
    return tensor.index_select(axis, index)


def read_mask(mask: Tensor | None) -> Mask | None:
    """The mask of a call: boolean, True = may look, or numbers to be added to the scores."""
    if mask is None:
        return None
    return Dense(mask) if mask.dtype == torch.bool else AdditiveMask(mask)
