"""Recurrent networks over whole sequences: stacked, bidirectional, with padding masked."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from regard.layers import fused
from regard.layers.cells import Cell, GRUCell, LSTMCell, RNNCell, start_states
from regard.layers.checks import check_inputs, check_lengths, check_state
from regard.layers.dropout import Dropout
from regard.layers.gates import CellGates, Gates, Steps, Watchable
from regard.layers.state import RecurrentState, concatenate, stack, where

KINDS: dict[str, Callable[[int, int], Cell]] = {
    "rnn": RNNCell,
    "rnn-relu": partial(RNNCell, activation="relu"),
    "lstm": LSTMCell,
    "gru": GRUCell,
}


class Recurrent(Watchable):
    """h_t = cell(x_t, h_{t-1}) for every t, and the next layer reads the outputs of this one

    A bidirectional layer has a second cell that reads from the end; outputs are concatenated.
    torch's fused kernels do the work. While the gates are watched, the cells do it instead, with
    the same weights and the same results. Dropout acts between layers, never between steps.

    Bidirectional: Schuster & Paliwal (1997). Stacked: Graves, Mohamed & Hinton (2013), section 2.
    Where to drop: Zaremba, Sutskever & Vinyals (2014), section 3.2.
    """

    def __init__(
        self,
        kind: str,
        input_size: int,
        hidden_size: int,
        layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
    ):
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"kind ({kind!r}) must be one of {', '.join(KINDS)}")
        if layers < 1:
            raise ValueError(f"layers ({layers}) must be at least 1")
        self.kind, self.input_size, self.hidden_size = kind, input_size, hidden_size
        self.layers, self.directions = layers, 2 if bidirectional else 1
        self.output_size = self.directions * hidden_size
        self.cells = nn.ModuleList(
            KINDS[kind](self.output_size if layer else input_size, hidden_size)
            for layer in range(layers)
            for _ in range(self.directions)
        )
        self.dropout = Dropout(dropout)

    @classmethod
    def from_torch(cls, module: nn.RNNBase) -> "Recurrent":
        """The same network as an `nn.RNN`, `nn.LSTM` or `nn.GRU`, with a copy of its weights."""
        if module.proj_size:
            raise ValueError(f"proj_size ({module.proj_size}) must be 0: outputs are hidden states")
        kind = {"RNN_TANH": "rnn", "RNN_RELU": "rnn-relu"}.get(module.mode, module.mode.lower())
        recurrent = cls(
            kind,
            module.input_size,
            module.hidden_size,
            module.num_layers,
            module.bidirectional,
            module.dropout,
        ).to(next(module.parameters()))
        ends = ("", "_reverse")[: recurrent.directions]
        places = [f"_l{layer}{end}" for layer in range(recurrent.layers) for end in ends]
        with torch.no_grad():
            for cell, place in zip(recurrent.cells, places, strict=True):
                for name, weight in cell.named_parameters():
                    theirs = getattr(module, name + place, None)  # there may be no biases
                    weight.zero_() if theirs is None else weight.copy_(theirs)
        return recurrent

    def forward(
        self, inputs: Tensor, lengths: Tensor | None = None, state: RecurrentState | None = None
    ) -> tuple[Tensor, RecurrentState]:
        """(batch, time, input) → (batch, time, direction × hidden), and the state at the end.

        `lengths` (batch,) counts the words of each row. Padding behind them changes nothing and
        comes out as zeros; a row of length 0 ends in the state it began with.
        """
        check_inputs(inputs, "batch", "time", input_size=self.input_size)
        batch, time, _ = inputs.shape
        if lengths is not None:
            check_lengths(lengths, batch, time)
        self._check_state(state, batch)
        if batch == 0 or time == 0:
            return inputs.new_zeros(batch, time, self.output_size), state or self.start(batch)
        mask = None if lengths is None else length_mask(lengths.to(inputs.device), time)
        if mask is not None:
            # Else a NaN at padding would be one in every gradient, for 0 · NaN is NaN.
            inputs = inputs.masked_fill(~mask[..., None], 0.0)
        return self._run(inputs, mask, state)

    def step(
        self, inputs: Tensor, state: RecurrentState | None = None
    ) -> tuple[Tensor, RecurrentState]:
        """One word (batch, input) → (batch, hidden) and the state after it, as in a whole run."""
        if self.directions == 2:
            raise ValueError(
                "bidirectional (True) must be False for a step: reading backward begins at the end"
            )
        check_inputs(inputs, "batch", input_size=self.input_size)
        self._check_state(state, len(inputs))
        state = state or self.start(len(inputs))
        # By the cells: to get going, a fused kernel takes longer than they do for a single word.
        steps: list[CellGates] = []
        for layer, (cell,) in enumerate(self._cells_by_layer()):
            inputs = self.dropout(inputs) if layer else inputs
            steps.append(cell.equations(inputs, state.at(layer)))
            inputs = steps[-1].hidden  # (batch, hidden)
        self.notify(Gates(tuple(((step,),) for step in steps)))
        return inputs, stack([step.state for step in steps])

    def start(self, batch_size: int) -> RecurrentState:
        """The state before the first word: zeros (layer × direction, batch, hidden)."""
        return start_states(cast(Sequence[Cell], self.cells), batch_size)

    def _run(
        self, inputs: Tensor, mask: Tensor | None, state: RecurrentState | None
    ) -> tuple[Tensor, RecurrentState]:
        ends, seen = [], []
        for layer, cells in enumerate(self._cells_by_layer()):
            inputs = self.dropout(inputs) if layer else inputs
            first = layer * self.directions
            start = None if state is None else state.at(slice(first, first + self.directions))
            # A compiler cannot look into torch's LSTM kernel, but it can into the cells.
            if self.listeners or torch.compiler.is_compiling():
                inputs, end, steps = run_cells(cells, inputs, mask, start)
                seen.append(steps)
            else:
                inputs, end = fused.run(cells, inputs, mask, start)
            ends.append(end)
        if seen:
            self.notify(Gates(tuple(seen), mask))
        return inputs, concatenate(ends)

    def _cells_by_layer(self) -> list[tuple[Cell, ...]]:
        """The cells of each layer, one a direction."""
        cells = iter(cast(Sequence[Cell], self.cells))
        return list(zip(*[cells] * self.directions, strict=True))

    def _check_state(self, state: RecurrentState | None, batch: int) -> None:
        if state is not None:
            shape = (self.layers * self.directions, batch, self.hidden_size)
            check_state(state, shape, cell=self.kind == "lstm")

    def extra_repr(self) -> str:
        return f"{self.kind!r}, {self.input_size}, {self.hidden_size}, layers={self.layers}"


def run_cells(
    cells: Sequence[Cell], inputs: Tensor, mask: Tensor | None, state: RecurrentState | None
) -> tuple[Tensor, RecurrentState, tuple[Steps, ...]]:
    """As `fused.run`, by the cells themselves, and with the gates of every step."""
    start = state or start_states(cells, len(inputs))
    runs, ends = [], []
    for direction, cell in enumerate(cells):
        steps, end = unroll(cell, inputs, mask, start.at(direction), backward=direction == 1)
        runs.append(steps)
        ends.append(end)
    hidden = [torch.stack([step.hidden for step in steps], dim=1) for steps in runs]
    outputs = torch.cat(hidden, dim=-1)  # (batch, time, direction × hidden)
    if mask is not None:
        outputs = outputs.masked_fill(~mask[..., None], 0.0)
    return outputs, stack(ends), tuple(runs)


def unroll(
    cell: Cell, inputs: Tensor, mask: Tensor | None, state: RecurrentState, *, backward: bool
) -> tuple[Steps, RecurrentState]:
    """Run one cell over (batch, time, input), word by word; at padding the state stays."""
    times = range(inputs.shape[1])
    steps: dict[int, CellGates] = {}
    for time in reversed(times) if backward else times:
        steps[time] = cell.equations(inputs[:, time], state)
        new = steps[time].state
        state = new if mask is None else where(mask[:, time], new, state)
    return tuple(steps[time] for time in times), state


def length_mask(lengths: Tensor, time: int) -> Tensor | None:
    """The mask (batch, time), True at words; None when every row is full."""
    if int(lengths.min()) == time:
        return None
    return torch.arange(time, device=lengths.device) < lengths[:, None]
