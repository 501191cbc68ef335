"""Recurrent cells: one step in time, written to be read.

Parameters have torch's names, shapes and order of gates, so the weights of `nn.LSTMCell` and its
sisters move over as they are. Two biases are kept for that reason alone; one would do.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.layers.checks import check_inputs, check_state
from regard.layers.gates import CellGates, Gates, GRUGates, LSTMGates, RNNGates, Watchable
from regard.layers.state import RecurrentState, stack
from regard.layers.unpadded import GRUSteps


class Cell(Watchable):
    """One step of a recurrent network: (input, state) → (output, state).

    The output is the new hidden state, returned on its own because it is what is used next.
    """

    blocks: ClassVar[int]  # how many (hidden, ·) blocks a weight stacks: one a gate or candidate
    has_cell: ClassVar[bool] = False
    # The sign under each block's activation that keeps the state as it was, for `fused.run_padded`.
    freezing_signs: ClassVar[tuple[float, ...] | None] = None
    # All steps over words without padding, the backward pass written out, for `fused.run_unpadded`.
    steps: ClassVar[type[torch.autograd.Function] | None] = None

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
            if size < 1:
                raise ValueError(f"{name} ({size}) must be at least 1")
        self.input_size, self.hidden_size = input_size, hidden_size
        self.weight_ih = nn.Parameter(torch.empty(self.blocks * hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(self.blocks * hidden_size, hidden_size))
        self.bias_ih = nn.Parameter(torch.empty(self.blocks * hidden_size))
        self.bias_hh = nn.Parameter(torch.empty(self.blocks * hidden_size))
        for weight in self.parameters():
            nn.init.uniform_(weight, -(hidden_size**-0.5), hidden_size**-0.5)

    def equations(self, inputs: Tensor, state: RecurrentState) -> CellGates:
        """The formula of the docstring: (batch, input) and a state → gates and the new state."""
        raise NotImplementedError

    def kernel(self, *arguments: Any) -> tuple[Tensor, ...]:
        """torch's own run of this cell over a whole sequence."""
        raise NotImplementedError

    def start(self, batch_size: int) -> RecurrentState:
        """The state before the first word: zeros (batch, hidden)."""
        zeros = self.weight_hh.new_zeros(batch_size, self.hidden_size)
        return RecurrentState(zeros, zeros if self.has_cell else None)

    def forward(
        self, inputs: Tensor, state: RecurrentState | None = None
    ) -> tuple[Tensor, RecurrentState]:
        check_inputs(inputs, "batch", input_size=self.input_size)
        state = self.start(len(inputs)) if state is None else state
        check_state(state, (len(inputs), self.hidden_size), cell=self.has_cell)
        gates = self.equations(inputs, state)
        self.notify(Gates((((gates,),),)))
        return gates.hidden, gates.state

    def project(self, inputs: Tensor, state: RecurrentState) -> tuple[Tensor, Tensor]:
        """W_ih x + b_ih and W_hh h + b_hh, the two sums under the gates: (batch, block × hidden)"""
        from_input = F.linear(inputs, self.weight_ih, self.bias_ih)
        from_state = F.linear(state.hidden, self.weight_hh, self.bias_hh)
        return from_input, from_state

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"


def start_states(cells: Sequence[Cell], batch_size: int) -> RecurrentState:
    """The states of several cells before the first word: zeros (cell, batch, hidden)."""
    return stack([cell.start(batch_size) for cell in cells])


class RNNCell(Cell):
    """h_t = tanh(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh), or ReLU in place of tanh

    Everything read so far is pressed into one vector, and pressed again at every step.

    Elman (1990), "Finding structure in time". ReLU, with W_hh the identity at the start: Le, Jaitly
    & Hinton (2015).
    """

    blocks = 1

    def __init__(self, input_size: int, hidden_size: int, activation: str = "tanh"):
        super().__init__(input_size, hidden_size)
        if activation not in ("tanh", "relu"):
            raise ValueError(f"activation ({activation!r}) must be tanh or relu")
        self.activation = activation

    def equations(self, inputs: Tensor, state: RecurrentState) -> RNNGates:
        from_input, from_state = self.project(inputs, state)  # (batch, hidden) each
        total = from_input + from_state
        return RNNGates(total.tanh() if self.activation == "tanh" else total.relu())

    def kernel(self, *arguments: Any) -> tuple[Tensor, ...]:
        kernel = torch.rnn_tanh if self.activation == "tanh" else torch.rnn_relu
        return kernel(*arguments)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, activation={self.activation!r}"


class LSTMCell(Cell):
    """i, f, o = σ(W x_t + b + U h_{t-1} + b′), each with its own W, U, b, b′
    g = tanh(W x_t + b + U h_{t-1} + b′)
    c_t = f ⊙ c_{t-1} + i ⊙ g
    h_t = o ⊙ tanh(c_t)

    A cell that is added to rather than pressed anew, so that with f = 1 and i = 0 it stays as it is
    and a gradient walks back through it unchanged. The blocks of a weight are i, f, g, o.

    Hochreiter & Schmidhuber (1997), section 4; the forget gate: Gers, Schmidhuber & Cummins (2000).
    """

    blocks = 4
    has_cell = True
    freezing_signs = (-1.0, 1.0, 0.0, 0.0)  # input gate 0, forget gate 1

    def equations(self, inputs: Tensor, state: RecurrentState) -> LSTMGates:
        assert state.cell is not None
        from_input, from_state = self.project(inputs, state)  # (batch, 4 × hidden) each
        i, f, g, o = (from_input + from_state).chunk(4, dim=-1)  # four of (batch, hidden)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        cell = f * state.cell + i * g
        return LSTMGates(i, f, g, o, cell, o * cell.tanh())

    def kernel(self, *arguments: Any) -> tuple[Tensor, ...]:
        return torch.lstm(*arguments)


class GRUCell(Cell):
    """r, z = σ(W x_t + b + U h_{t-1} + b′), each with its own W, U, b, b′
    n = tanh(W x_t + b + r ⊙ (U h_{t-1} + b′))
    h_t = (1 − z) ⊙ n + z ⊙ h_{t-1}

    One state and two gates: as much is let in as is given up. Here, as in torch, r acts after the
    recurrent product; the paper has U (r ⊙ h_{t-1}), and weights trained for one do not suit the
    other. The blocks of a weight are r, z, n.

    Cho et al. (2014), "Learning phrase representations using RNN encoder-decoder", section 2.3.
    """

    blocks = 3
    freezing_signs = (0.0, 1.0, 0.0)  # update gate 1
    steps = GRUSteps

    def equations(self, inputs: Tensor, state: RecurrentState) -> GRUGates:
        from_input, from_state = self.project(inputs, state)  # (batch, 3 × hidden) each
        r, z, n = from_input.chunk(3, dim=-1)  # three of (batch, hidden)
        r_state, z_state, n_state = from_state.chunk(3, dim=-1)  # three of (batch, hidden)
        r, z = (r + r_state).sigmoid(), (z + z_state).sigmoid()
        n = (n + r * n_state).tanh()
        return GRUGates(r, z, n, (1 - z) * n + z * state.hidden)

    def kernel(self, *arguments: Any) -> tuple[Tensor, ...]:
        return torch.gru(*arguments)
