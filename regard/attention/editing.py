"""Change where a model looks, between weigh and mix, and let the rest of it go on from there.

Whether a look is a cause is seen by changing it: the rows an edit touches read something else, and
whatever depended on them moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.attention import Attention, Change, Selection, select_indices
from regard.attention.watching import attentions, insert_change
from regard.naming import suggest


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Which weights an edit touches: heads, rows (queries) and keys; None is all of them."""

    heads: Selection | None = None
    rows: Selection | None = None
    keys: Selection | None = None

    def index(self, weights: Tensor) -> tuple[Any, ...]:
        """How to reach these cells in weights (batch, …, query, key), every axis kept."""
        if self.heads is not None and weights.dim() < 4:
            raise ValueError(f"heads ({self.heads!r}) were named, but this attention has one head")
        selections = [("keys", self.keys, -1), ("rows", self.rows, -2)]
        selections += [("heads", self.heads, -3)] if weights.dim() >= 4 else []
        grids = []
        for name, selection, axis in selections:
            indices = select_indices(name, selection, weights.shape[axis], weights.device)
            grids.append(indices.view(-1, *[1] * (-axis - 1)))
        return (..., *reversed(grids))


def _fill(cells: Cells, weights: Tensor, value: Tensor | float) -> Tensor:
    filled = weights.clone()
    index = cells.index(weights)
    if isinstance(value, Tensor):
        value = value.to(weights).expand_as(weights)[index]
    filled[index] = value
    return filled


def zero(**selections: Selection | None) -> Change:
    """Weights of 0: nothing is read there."""
    cells = Cells(**selections)
    return lambda weights, mask: _fill(cells, weights, 0.0)


def uniform(**selections: Selection | None) -> Change:
    """The same weight for every key that may be seen."""
    cells = Cells(**selections)

    def change(weights: Tensor, mask: Tensor | None) -> Tensor:
        visible = torch.ones_like(weights) if mask is None else mask.expand_as(weights).to(weights)
        uniform_weights = visible / visible.sum(dim=-1, keepdim=True).clamp(min=1.0)
        return _fill(cells, weights, uniform_weights)

    return change


def set_to(value: float | Tensor, **selections: Selection | None) -> Change:
    """Weights given by hand: a number, or a tensor that fits (…, query, key)."""
    cells = Cells(**selections)

    def change(weights: Tensor, mask: Tensor | None) -> Tensor:
        try:
            return _fill(cells, weights, value)
        except RuntimeError:
            shape = tuple(value.shape) if isinstance(value, Tensor) else value
            raise ValueError(
                f"value {shape} does not fit the weights {tuple(weights.shape)}"
            ) from None

    return change


def freeze(weights: Tensor | Sequence[Tensor]) -> Change:
    """The weights of another pass, call by call: `freeze([r.weights for r in seen[path]])`."""
    recorded = [weights] if isinstance(weights, Tensor) else list(weights)
    calls = iter(recorded)

    def change(current: Tensor, mask: Tensor | None) -> Tensor:
        frozen = recorded[0] if len(recorded) == 1 else next(calls, None)
        if frozen is None:
            raise ValueError(f"freeze holds {len(recorded)} calls, and another one came")
        if frozen.shape != current.shape:
            raise ValueError(
                f"freeze holds weights {tuple(frozen.shape)}, but this call has "
                f"{tuple(current.shape)}"
            )
        return frozen.to(current)

    return change


def swap(
    *,
    heads: tuple[int, int] | None = None,
    rows: tuple[int, int] | None = None,
    keys: tuple[int, int] | None = None,
) -> Change:
    """Two heads, two rows or two keys exchange their weights."""
    pairs = [(-3, heads), (-2, rows), (-1, keys)]

    def change(weights: Tensor, mask: Tensor | None) -> Tensor:
        for axis, pair in pairs:
            if pair is None:
                continue
            if -axis > weights.dim() - 1 or max(pair) >= weights.shape[axis] or min(pair) < 0:
                raise ValueError(f"swap {pair} does not fit the weights {tuple(weights.shape)}")
            order = torch.arange(weights.shape[axis], device=weights.device)
            order[list(pair)] = order[list(pair[::-1])]
            weights = weights.index_select(axis, order)
        return weights

    return change


CHANGES_BY_NAME = {"zero": zero, "uniform": uniform}
"""Edits that need no more than a name, as on the command line."""


@contextmanager
def edit(model: nn.Module, changes: Mapping[str, Change | str]) -> Iterator[None]:
    """Within the `with`, each attention named has its weights changed before they mix.

    with edit(model, {"layers.3.attention": zero(heads=2), "layers.5.attention:0": "uniform"}):
        model(batch)
    """
    parts = attentions(model)
    resolved = [_resolve(parts, path, change) for path, change in changes.items()]
    with ExitStack() as stack:
        for part, change in resolved:
            stack.enter_context(insert_change(part, change))
        yield


def _resolve(
    parts: dict[str, Attention], path: str, change: Change | str
) -> tuple[Attention, Change]:
    path, _, head = path.partition(":")
    if path not in parts:
        hint = suggest(path, parts) if parts else "there are: none"
        raise ValueError(f"no attention at {path!r}; {hint}")
    if isinstance(change, str):
        if change not in CHANGES_BY_NAME:
            raise ValueError(f"edit {change!r} is not known; {suggest(change, CHANGES_BY_NAME)}")
        if head and not head.isdigit():
            raise ValueError(f"head ({head!r}) must be a whole number, as in {path}:0")
        return parts[path], CHANGES_BY_NAME[change](heads=int(head) if head else None)
    if head:
        raise ValueError(f"{path}:{head}: name heads inside the change, as in zero(heads={head})")
    return parts[path], change
