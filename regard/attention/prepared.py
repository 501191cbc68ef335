"""What a decoder comes back to at every step, transformed once: keys, and memory with its values.

Like a decoder's state it can be picked, for the hypotheses that go on, and appended to, for keys
that grow; both give another one and leave this as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Self

import torch
from torch import Tensor

from regard.attention.picking import Rows, pick_rows


@dataclass(frozen=True)
class Prepared:
    """Keys as a score wants them, transformed ahead of the first query."""

    keys: Tensor  # (batch, …, key, size)

    def pick(self, rows: Rows) -> Self:
        """The keys of some rows of the batch."""
        return self._map(lambda tensor: pick_rows(tensor, rows))

    def append(self, later: Self) -> Self:
        """These keys, and `later` ones behind them."""
        ahead, behind = self._tensors(), later._tensors()
        return type(self)(**{name: _concatenate(ahead[name], behind[name]) for name in ahead})

    def detach(self) -> Self:
        """The same without a graph, for a decoder whose gradient ends here."""
        return self._map(Tensor.detach)

    def _map(self, change: Callable[[Tensor], Tensor]) -> Self:
        changed: dict[str, Any] = self._tensors()
        for name, tensor in changed.items():
            changed[name] = None if tensor is None else change(tensor)
        return type(self)(**changed)

    def _tensors(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}


@dataclass(frozen=True)
class AdditiveKeys(Prepared):
    """U k, and e²ᵁᵏ beside it: a step then takes a product and a reciprocal for each pair."""

    exponentials: Tensor | None  # (batch, …, key, hidden); None where a key is too large for it


@dataclass(frozen=True)
class PreparedMemory:
    """Keys and values of a multi-head attention, projected ahead of the first query."""

    keys: Prepared  # (batch, head, key, size)
    values: Tensor  # (batch, head, key, size)

    def pick(self, rows: Rows) -> PreparedMemory:
        """The memory of some rows of the batch."""
        return PreparedMemory(self.keys.pick(rows), pick_rows(self.values, rows))

    def append(self, later: PreparedMemory) -> PreparedMemory:
        """This memory, and `later` positions behind it."""
        values = torch.cat([self.values, later.values], dim=-2)
        return PreparedMemory(self.keys.append(later.keys), values)

    def detach(self) -> PreparedMemory:
        """The same without a graph, for a decoder whose gradient ends here."""
        return PreparedMemory(self.keys.detach(), self.values.detach())


def _concatenate(one: Tensor | None, other: Tensor | None) -> Any:
    return None if one is None or other is None else torch.cat([one, other], dim=-2)
