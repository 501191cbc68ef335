"""Choosing rows of the batch, as a beam does, or whoever looks at one sentence of many."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

Rows = int | slice | Tensor
"""One row of the batch, a stretch of them, or their numbers (row,); the batch axis stays."""


def pick_rows(tensor: Tensor, rows: Rows) -> Tensor:
    """These rows of (batch, …): a copy if they are numbered one by one, else a view. All of them in
    their order are the tensor itself."""
    if isinstance(rows, Tensor):
        return tensor if is_identity(rows, len(tensor)) else tensor.index_select(0, rows)
    return tensor[rows : rows + 1] if isinstance(rows, int) else tensor[rows]


def is_identity(rows: Tensor, batch: int) -> bool:
    """Whether these are all rows of the batch in their order, so that nothing need be copied."""
    return len(rows) == batch and torch.equal(rows, torch.arange(batch, device=rows.device))


def pick_carried(carried: Any, rows: Rows, batch: int) -> Any:
    """These rows of whatever a weighing carries: a tensor, a tuple of them, a count of steps."""
    if isinstance(carried, Tensor):
        # What does not have the batch as its first axis, a step or a size-1 axis, is for all rows.
        has_rows = carried.dim() > 0 and carried.shape[0] == batch
        return pick_rows(carried, rows) if has_rows else carried
    if isinstance(carried, tuple):
        parts = (pick_carried(part, rows, batch) for part in carried)
        return type(carried)._make(parts) if hasattr(carried, "_make") else tuple(parts)
    return carried


def detach_carried(carried: Any) -> Any:
    """Whatever a weighing carries, without its graph."""
    if isinstance(carried, Tensor):
        return carried.detach()
    if isinstance(carried, tuple):
        parts = (detach_carried(part) for part in carried)
        return type(carried)._make(parts) if hasattr(carried, "_make") else tuple(parts)
    return carried
