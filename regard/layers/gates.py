"""The gates and states of a recurrent network, recorded from outside.

A recurrent network hides its work in its gates: what was let in, what was kept, what was shown.
`watch_gates` keeps all of it, call by call, under the path a module already has.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.layers.state import RecurrentState

DIRECTIONS = ("forward", "backward")


class RNNGates(NamedTuple):
    """One step of a plain RNN, which has no gates: its new state (batch, hidden)."""

    hidden: Tensor

    @property
    def state(self) -> RecurrentState:
        return RecurrentState(self.hidden)


class LSTMGates(NamedTuple):
    """One step of an LSTM, every tensor (batch, hidden)."""

    input: Tensor  # 1 lets the candidate in
    forget: Tensor  # 1 keeps the old cell, in spite of its name
    candidate: Tensor  # what would be written
    output: Tensor  # 1 shows the cell
    cell: Tensor
    hidden: Tensor

    @property
    def state(self) -> RecurrentState:
        return RecurrentState(self.hidden, self.cell)


class GRUGates(NamedTuple):
    """One step of a GRU, every tensor (batch, hidden)."""

    reset: Tensor  # 0 makes the candidate ignore the past
    update: Tensor  # 1 keeps the old state, in spite of its name
    candidate: Tensor  # what would be written
    hidden: Tensor

    @property
    def state(self) -> RecurrentState:
        return RecurrentState(self.hidden)


CellGates = RNNGates | LSTMGates | GRUGates
Steps = tuple[CellGates, ...]  # one a time step, in the order of the text also when read backward


@dataclass(frozen=True)
class Gates:
    """All gates and states of one call: `steps[layer][direction][time]`, stacked on demand."""

    steps: tuple[tuple[Steps, ...], ...]
    mask: Tensor | None = None  # (batch, time), True at words

    @property
    def names(self) -> tuple[str, ...]:
        """What `of` can be asked for: the gates, `hidden`, and an LSTM's `cell`."""
        return self.steps[0][0][0]._fields

    def of(self, name: str, *, layer: int = -1, direction: str = "forward") -> Tensor:
        """One gate over time (batch, time, hidden), by default of the top layer; 0 at padding."""
        steps = torch.stack(self.per_step(name, layer=layer, direction=direction), dim=1)
        return steps if self.mask is None else steps.masked_fill(~self.mask[..., None], 0.0)

    def per_step(self, name: str, *, layer: int = -1, direction: str = "forward") -> list[Tensor]:
        """One (batch, hidden) a time step: the very tensors the network computed with."""
        directions = DIRECTIONS[: len(self.steps[0])]
        if name not in self.names:
            raise ValueError(f"name ({name!r}) must be one of {', '.join(self.names)}")
        if direction not in directions:
            raise ValueError(f"direction ({direction!r}) must be one of {', '.join(directions)}")
        if not -len(self.steps) <= layer < len(self.steps):
            raise ValueError(f"layer ({layer}) must be one of the {len(self.steps)} there are")
        return [getattr(step, name) for step in self.steps[layer][directions.index(direction)]]

    @staticmethod
    def join(calls: "Sequence[Gates]") -> "Gates":
        """One record of a sentence that was read in several calls, such as one word at a time."""
        if not calls:
            raise ValueError("calls (none) must be at least one: nothing ran while it was watched")
        if len(calls) == 1:
            return calls[0]
        if len(calls[0].steps[0]) > 1:
            raise ValueError(
                f"calls ({len(calls)}) must be one for a bidirectional network: "
                "in each of them it reads backward from another end"
            )
        layers = zip(*(call.steps for call in calls), strict=True)
        steps = tuple((tuple(step for (run,) in layer for step in run),) for layer in layers)
        if all(call.mask is None for call in calls):
            return Gates(steps)
        return Gates(steps, torch.cat([_mask(call) for call in calls], dim=1))


class Watchable(nn.Module):
    """A module whose gates `watch_gates` can record; without listeners it need not compute them."""

    def __init__(self) -> None:
        super().__init__()
        self.listeners: list[Callable[[Gates], None]] = []

    def notify(self, gates: Gates) -> None:
        """Hand the gates of one call to every listener."""
        for listener in self.listeners:
            listener(gates)


def recurrent_modules(model: nn.Module) -> dict[str, Watchable]:
    """Every recurrent module of `model` by its path; a model that is one itself is "recurrent"."""
    if isinstance(model, Watchable):
        return {"recurrent": model}
    parts: dict[str, Watchable] = {}
    for path, part in model.named_modules():
        # The cells inside a Recurrent are recorded by it and not for themselves.
        if isinstance(part, Watchable) and not any(path.startswith(f"{outer}.") for outer in parts):
            parts[path] = part
    return parts


@contextmanager
def watch_gates(model: nn.Module) -> Iterator[dict[str, list[Gates]]]:
    """Record the gates and states of every recurrent module of `model`, call by call.

    with watch_gates(model) as seen:
        model(batch)
    seen["encoder"][-1].of("forget", layer=0)  # (batch, time, hidden)

    While watched, a network runs its readable cells instead of the fused kernel; the numbers are
    the same. They are kept with their history, so that gradients can be asked of them: watch inside
    `torch.no_grad()` when none are wanted.
    """
    parts = recurrent_modules(model)
    seen: dict[str, list[Gates]] = {path: [] for path in parts}
    for path, part in parts.items():
        part.listeners.append(seen[path].append)
    try:
        yield seen
    finally:
        for path, part in parts.items():
            part.listeners.remove(seen[path].append)


def _mask(call: Gates) -> Tensor:
    if call.mask is not None:
        return call.mask
    hidden = call.per_step("hidden")
    return torch.ones(len(hidden[0]), len(hidden), dtype=torch.bool, device=hidden[0].device)
