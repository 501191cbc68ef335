"""What a recurrent network carries from one word to the next."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class RecurrentState(NamedTuple):
    """The hidden state, and the cell where there is one.

    The tensors of a cell are (batch, hidden), those of a whole `Recurrent` are
    (layer × direction, batch, hidden), lower layers first and forward before backward.
    """

    hidden: Tensor
    cell: Tensor | None = None  # only an LSTM has one

    def pick(self, rows: Tensor) -> "RecurrentState":
        """The state of these rows of the batch, in this order; a row may come more than once."""
        return self.each(lambda part: part.index_select(-2, rows))

    def at(self, place: int | slice) -> "RecurrentState":
        """The state of one layer and direction, or of several, out of all."""
        return self.each(lambda part: part[place])

    def detach(self) -> "RecurrentState":
        """The same numbers without their history, for truncated backpropagation through time."""
        return self.each(Tensor.detach)

    def each(self, change: Callable[[Tensor], Tensor]) -> "RecurrentState":
        """The state with the same change made to each of its tensors."""
        return RecurrentState(change(self.hidden), None if self.cell is None else change(self.cell))


def stack(states: Sequence[RecurrentState]) -> RecurrentState:
    """Several (batch, hidden) → one (state, batch, hidden)."""
    return _together(torch.stack, states)


def join(states: Sequence[RecurrentState]) -> RecurrentState:
    """Several (some, batch, hidden) → one (all, batch, hidden)."""
    return _together(torch.cat, states)


def choose(rows: Tensor, state: RecurrentState, other: RecurrentState) -> RecurrentState:
    """The rows of `state` where `rows` (batch,) is True, those of `other` elsewhere."""
    return _together(lambda parts: torch.where(rows[:, None], parts[0], parts[1]), [state, other])


def check(state: RecurrentState, shape: tuple[int, ...], *, cell: bool) -> None:
    """Refuse a state whose parts are not of `shape`, or that lacks a cell or has one too many."""
    if (state.cell is not None) != cell:
        raise ValueError(f"state.cell must {'be given' if cell else 'be None'}")
    for name, part in zip(state._fields, state, strict=True):
        if part is not None and part.shape != shape:
            raise ValueError(f"state.{name} {tuple(part.shape)} must be {shape}")


def _together(
    how: Callable[[list[Tensor]], Tensor], states: Sequence[RecurrentState]
) -> RecurrentState:
    cells = [state.cell for state in states if state.cell is not None]
    return RecurrentState(how([state.hidden for state in states]), how(cells) if cells else None)
