"""Change where a model looks, between weigh and mix, and let the rest of it go on from there.

Whether a look is a cause is seen by changing it: the rows an edit touches read something else, and
whatever depended on them moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.attended import Selection, select_indices
from regard.attention.foreign import catch_calls, check_was_seen
from regard.attention.recording import Call, Change, Session, activate
from regard.attention.watching import attentions, known_paths
from regard.naming import suggest


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Which weights an edit touches: heads, rows (queries) and keys; None is all of them.

    Rows are positions in the queries' sequence: with a cache, a row is touched at the step that
    reads it. Those that count from the end count from the last position read so far.
    """

    heads: Selection | None = None
    rows: Selection | None = None
    keys: Selection | None = None

    def index(self, weights: Tensor, call: Call) -> tuple[Any, ...]:
        """How to reach these cells in weights (batch, …, query, key), every axis kept."""
        device = weights.device
        selections = [select_indices("keys", self.keys, weights.shape[-1], device)]
        selections.append(self._select_rows(call, device))
        if weights.dim() >= 4:
            places = [call.heads.index(head) for head in self._select_heads(call.head_count)]
            selections.append(torch.tensor(places, device=device))
        elif self.heads is not None:
            raise ValueError(f"heads ({self.heads!r}) were named, but this attention has one head")
        grids = [each.view(-1, *[1] * axis) for axis, each in enumerate(selections)]
        return (..., *reversed(grids))

    def name_heads(self, count: int) -> list[int] | None:
        """The heads of `count` that are touched; None for all."""
        return None if self.heads is None else self._select_heads(count)

    def _select_heads(self, count: int) -> list[int]:
        heads: list[int] = select_indices("heads", self.heads, count, torch.device("cpu")).tolist()
        return heads

    def _select_rows(self, call: Call, device: torch.device) -> Tensor:
        """The rows of this call among the positions chosen."""
        selection, end = self.rows, call.rows.stop
        # Positions that are still to come are no mistake.
        if isinstance(selection, int) and selection >= end:
            selection = []
        if isinstance(selection, list):
            selection = [row for row in selection if row < end]
        positions = select_indices("rows", selection, end, device)
        return positions[positions >= call.rows.start] - call.rows.start

    def check_rows(self, path: str, end: int) -> None:
        """Raise a ValueError if a row was named that never came."""
        rows = [self.rows] if isinstance(self.rows, int) else self.rows
        if isinstance(rows, list) and max(rows, default=-1) >= end:
            raise ValueError(
                f"rows ({self.rows!r}) of {path!r} must lie within 0 … {end - 1}: "
                "these positions were read"
            )


@dataclass(frozen=True)
class CellChange:
    """Other numbers in some cells of the weights; the rest stays."""

    cells: Cells
    compute: Callable[[Tensor, Tensor | None], Tensor | float]
    """From weights and mask what to write, a number or as many as there are heads in all."""

    def __call__(self, weights: Tensor, mask: Tensor | None, call: Call) -> Tensor:
        value, filled = self.compute(weights, mask), weights.clone()
        index = self.cells.index(weights, call)
        if isinstance(value, Tensor):
            value = _spread(value.to(weights), weights, call)[index]
        filled[index] = value
        return filled

    def name_heads(self, count: int) -> list[int] | None:
        return self.cells.name_heads(count)

    def check_rows(self, path: str, end: int) -> None:
        self.cells.check_rows(path, end)


def _spread(value: Tensor, weights: Tensor, call: Call) -> Tensor:
    """The value in the shape of the weights, of its heads those that the weights are of."""
    has_heads = value.dim() >= 3 and weights.dim() >= 4
    if has_heads and value.shape[-3] == call.head_count != weights.shape[-3]:
        heads = torch.tensor(call.heads, device=value.device)
        value = value.index_select(-3, heads)
    try:
        return value.expand_as(weights)
    except RuntimeError:
        shapes = f"{tuple(value.shape)} does not fit the weights {tuple(weights.shape)}"
        raise ValueError(f"value {shapes}") from None


def zero(**selections: Selection | None) -> Change:
    """Weights of 0: nothing is read there."""
    return CellChange(Cells(**selections), lambda weights, mask: 0.0)


def uniform(**selections: Selection | None) -> Change:
    """The same weight for every key that may be seen."""

    def share(weights: Tensor, mask: Tensor | None) -> Tensor:
        visible = torch.ones_like(weights) if mask is None else mask.expand_as(weights).to(weights)
        return visible / visible.sum(dim=-1, keepdim=True).clamp(min=1.0)

    return CellChange(Cells(**selections), share)


def set_to(value: float | Tensor, **selections: Selection | None) -> Change:
    """Weights given by hand: a number, or a tensor that fits (…, query, key)."""
    return CellChange(Cells(**selections), lambda weights, mask: value)


def freeze(weights: Tensor | Sequence[Tensor]) -> Change:
    """The weights of another pass, call by call: `freeze([r.weights for r in seen[path]])`."""
    recorded = [weights] if isinstance(weights, Tensor) else list(weights)

    def change(current: Tensor, mask: Tensor | None, call: Call) -> Tensor:
        if len(recorded) > 1 and call.step >= len(recorded):
            raise ValueError(f"freeze holds {len(recorded)} calls, and another one came")
        frozen = recorded[call.step if len(recorded) > 1 else 0]
        if frozen.shape != current.shape:
            raise ValueError(
                f"freeze holds weights {tuple(frozen.shape)}, but this call has "
                f"{tuple(current.shape)}"
            )
        return frozen.to(current)

    return change


@dataclass(frozen=True)
class Swap:
    """Two heads, two rows or two keys exchange their weights."""

    heads: tuple[int, int] | None
    rows: tuple[int, int] | None
    keys: tuple[int, int] | None

    def __call__(self, weights: Tensor, mask: Tensor | None, call: Call) -> Tensor:
        if self.heads is not None:
            weights = self._exchange(weights, -3, self.heads, call.heads)
        if self.rows is not None and any(row in call.rows for row in self.rows):
            weights = self._exchange(weights, -2, self.rows, call.rows)
        if self.keys is not None:
            weights = self._exchange(weights, -1, self.keys, range(weights.shape[-1]))
        return weights

    def _exchange(
        self, weights: Tensor, axis: int, pair: tuple[int, int], names: Sequence[int]
    ) -> Tensor:
        if any(each not in names for each in pair):
            raise ValueError(f"swap {pair} does not fit the weights {tuple(weights.shape)}")
        places = [names.index(each) for each in pair]
        order = torch.arange(weights.shape[axis], device=weights.device)
        order[places] = order[places[::-1]]
        return weights.index_select(axis, order)

    def name_heads(self, count: int) -> list[int] | None:
        return None if self.heads is None else [head for head in self.heads if head < count]

    def check_rows(self, path: str, end: int) -> None:
        rows = None if self.rows is None else list(self.rows)
        Cells(rows=rows).check_rows(path, end)


def swap(
    *,
    heads: tuple[int, int] | None = None,
    rows: tuple[int, int] | None = None,
    keys: tuple[int, int] | None = None,
) -> Change:
    """Two heads, two rows or two keys exchange their weights; two rows must be of one call."""
    return Swap(heads, rows, keys)


CHANGES_BY_NAME = {"zero": zero, "uniform": uniform}
"""Edits that need no more than a name, as on the command line."""


@contextmanager
def edit(model: nn.Module, changes: Mapping[str, Change | str]) -> Iterator[None]:
    """Within the `with`, each attention named has its weights changed before they mix.

    with edit(model, {"layers.3.attention": zero(heads=2), "layers.5.attention:0": "uniform"}):
        model(batch)

    A path is that of an attention of ours, or of any module that calls torch's
    `scaled_dot_product_attention`. Only the heads that a change names are written out; the rest
    stays on the kernel. A change of your own is a function of weights, mask and `Call`.
    """
    paths = known_paths(model)
    planned = [_resolve(model, paths, path, change) for path, change in changes.items()]
    by_module: dict[int, list[Change]] = {}
    for _, module, change in planned:
        by_module.setdefault(module, []).append(change)
    session = Session(model, paths, changes=by_module)
    with activate(session), catch_calls(session):
        yield
    for path, module, change in planned:
        _check_was_made(session, path, module, change)


def _check_was_made(session: Session, path: str, module: int, change: Change) -> None:
    """Raise a ValueError if the change met no call, or no call had its rows."""
    history = session.histories.get(module)
    if history is not None:
        if isinstance(change, CellChange | Swap):
            change.check_rows(path, history.longest)
    elif session.called and path not in attentions(session.model):
        check_was_seen(session)
        made = [session.paths[each][0] for each in session.histories]
        hint = suggest(path, made) if made else "there are: none"
        raise ValueError(
            f"nothing was changed: {type(session.model).__name__} made no attention call at "
            f"{path!r}; {hint}"
        )


def _resolve(
    model: nn.Module, paths: Mapping[int, Sequence[str]], path: str, change: Change | str
) -> tuple[str, int, Change]:
    """The path, the module's identity and the change."""
    path, _, head = path.partition(":")
    module = next((each for each, named in paths.items() if path in named), None)
    if module is None:
        parts = list(attentions(model)) or [name for named in paths.values() for name in named]
        raise ValueError(f"no attention at {path!r}; {suggest(path, parts)}")
    if isinstance(change, str):
        if change not in CHANGES_BY_NAME:
            raise ValueError(f"edit {change!r} is not known; {suggest(change, CHANGES_BY_NAME)}")
        if head and not head.isdigit():
            raise ValueError(f"head ({head!r}) must be a whole number, as in {path}:0")
        return path, module, CHANGES_BY_NAME[change](heads=int(head) if head else None)
    if head:
        raise ValueError(f"{path}:{head}: name heads inside the change, as in zero(heads={head})")
    return path, module, change
