"""The state of a recurrent network, which it carries from one word to the next."""

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
        return self.map(lambda part: part.index_select(-2, rows))

    def at(self, index: int | slice) -> "RecurrentState":
        """The state of one layer and direction, or of several, out of all."""
        return self.map(lambda part: part[index])

    def detach(self) -> "RecurrentState":
        """The same numbers without their history, for truncated backpropagation through time."""
        return self.map(Tensor.detach)

    def map(self, function: Callable[[Tensor], Tensor]) -> "RecurrentState":
        """The state with `function` applied to each of its tensors."""
        cell = None if self.cell is None else function(self.cell)
        return RecurrentState(function(self.hidden), cell)


def stack(states: Sequence[RecurrentState]) -> RecurrentState:
    """Several (batch, hidden) → one (state, batch, hidden)."""
    return _combine(torch.stack, states)


def concatenate(states: Sequence[RecurrentState]) -> RecurrentState:
    """Several (some, batch, hidden) → one (all, batch, hidden)."""
    return _combine(torch.cat, states)


def where(rows: Tensor, state: RecurrentState, other: RecurrentState) -> RecurrentState:
    """The rows of `state` where `rows` (batch,) is True, those of `other` elsewhere."""
    return _combine(lambda parts: torch.where(rows[:, None], parts[0], parts[1]), [state, other])


def _combine(
    function: Callable[[list[Tensor]], Tensor], states: Sequence[RecurrentState]
) -> RecurrentState:
    cells = [state.cell for state in states if state.cell is not None]
    hidden = function([state.hidden for state in states])
    return RecurrentState(hidden, function(cells) if cells else None)
