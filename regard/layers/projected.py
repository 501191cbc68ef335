"""An LSTM whose output is a narrow projection of a wide cell, both kept within bounds.

As in `unpadded.py`, rows of different lengths are laid out step by step without padding, all
directions go through the steps as one batched product, and the backward pass is written out.
torch's LSTM has a projection too (`proj_size`), but lets the cell grow as it likes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from regard.layers.checks import check_lengths
from regard.layers.state import RecurrentState
from regard.layers.unpadded import Layout


class ProjectedLSTM(nn.Module):
    """i, f, o = σ(W x_t + U h_{t-1} + b), each with its own W, U, b
    g = tanh(W x_t + U h_{t-1} + b)
    c_t = clip(f ⊙ c_{t-1} + i ⊙ g)
    h_t = clip(P (o ⊙ tanh(c_t)))

    One layer, read in one direction or in two that know nothing of each other: each has weights and
    inputs of its own, which are the first axis of every tensor. The blocks of W, U and b are i, f,
    g, o as in torch, whose names the weights have. A new layer forgets little: 1 is added to b of
    the forget gate.

    Projection: Sak, Senior & Beaufays (2014), equations 7 to 12.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        projection_size: int,
        directions: int = 2,
        cell_clip: float | None = None,
        projection_clip: float | None = None,
    ):
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.projection_size, self.directions = projection_size, directions
        self.cell_clip, self.projection_clip = cell_clip, projection_clip
        self.weight_ih = nn.Parameter(torch.empty(directions, 4 * hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(directions, 4 * hidden_size, projection_size))
        self.weight_hr = nn.Parameter(torch.empty(directions, projection_size, hidden_size))
        self.bias = nn.Parameter(torch.zeros(directions, 4 * hidden_size))
        for weight in (self.weight_ih, self.weight_hh, self.weight_hr):
            nn.init.normal_(weight, std=weight.shape[-1] ** -0.5)
        with torch.no_grad():
            self.bias[:, hidden_size : 2 * hidden_size] = 1.0

    def start(self, batch_size: int) -> RecurrentState:
        """The state before the first word: zeros (direction, batch, projection) and (…, hidden)."""
        return RecurrentState(
            self.bias.new_zeros(self.directions, batch_size, self.projection_size),
            self.bias.new_zeros(self.directions, batch_size, self.hidden_size),
        )

    def forward(
        self, inputs: Tensor, lengths: Tensor | None = None, state: RecurrentState | None = None
    ) -> tuple[Tensor, RecurrentState]:
        """(direction, batch, time, input) → (direction, batch, time, projection), and the state.

        Everything stands in the order of the text, though the second direction reads it from the
        end; its state is the one at the first word. `lengths` (batch,) counts the words of each
        row. Padding behind them changes nothing and comes out as zeros; a row of length 0 ends in
        the state it began with.
        """
        directions, batch, time, _ = inputs.shape
        if (directions, inputs.shape[-1]) != (self.directions, self.input_size):
            raise ValueError(
                f"inputs {tuple(inputs.shape)} must be (direction {self.directions}, batch, time, "
                f"input_size {self.input_size})"
            )
        if lengths is None:
            lengths = torch.full((batch,), time)
        check_lengths(lengths, batch, time)
        start = self.start(batch) if state is None else state
        # What a cell adds up over a hundred steps is not for half precision.
        with torch.autocast(inputs.device.type, enabled=False):
            return self._run(inputs.to(self.bias.dtype), lengths, start)

    def _run(
        self, inputs: Tensor, lengths: Tensor, start: RecurrentState
    ) -> tuple[Tensor, RecurrentState]:
        time = inputs.shape[2]
        assert start.cell is not None
        layout = Layout(lengths.cpu())
        words = inputs[:, layout.rows, layout.times]  # (direction, word, input)
        words = torch.cat([words[:1], words[1:, layout.mirror]])
        from_input = torch.baddbmm(self.bias.unsqueeze(1), words, self.weight_ih.mT)
        # (direction, word, projection) and (direction, word, hidden)
        hidden, cell = _ProjectedSteps.apply(  # type: ignore[no-untyped-call]
            from_input,
            start.hidden[:, layout.order],
            start.cell[:, layout.order],
            self.weight_hh,
            self.weight_hr,
            (self.cell_clip, self.projection_clip),
            layout.steps,
        )
        outputs = torch.stack(
            [layout.pad(hidden[0], time), *(layout.pad(h[layout.mirror], time) for h in hidden[1:])]
        )
        return outputs, self._end(layout, lengths, hidden, cell, start)

    def _end(
        self, layout: Layout, lengths: Tensor, hidden: Tensor, cell: Tensor, start: RecurrentState
    ) -> RecurrentState:
        """The state behind the last word that was read, of the start where there was none."""
        assert start.cell is not None
        if not hidden.shape[1]:
            return start
        has_words = (lengths > 0).to(hidden.device)[:, None]
        ends = torch.where(lengths > 0, layout.ends, 0)
        return RecurrentState(
            torch.where(has_words, hidden[:, ends], start.hidden),
            torch.where(has_words, cell[:, ends], start.cell),
        )

    def extra_repr(self) -> str:
        sizes = f"{self.input_size}, {self.hidden_size}, {self.projection_size}"
        return f"{sizes}, directions={self.directions}"


class _ProjectedSteps(torch.autograd.Function):
    """All steps of a projected LSTM, all directions at once.

    from_input (direction, word, 4 · hidden) are W x + b of all words; the start is (direction, row,
    projection) and (direction, row, hidden) → h and c behind every word. A number that was clipped
    passes no gradient on.
    """

    @staticmethod
    def forward(
        ctx: Any,
        from_input: Tensor,
        start_hidden: Tensor,
        start_cell: Tensor,
        recurrent: Tensor,
        projection: Tensor,
        clips: tuple[float | None, float | None],
        steps: list[tuple[int, int]],
    ) -> tuple[Tensor, Tensor]:
        directions, words, _ = from_input.shape
        size, projected = recurrent.shape[1] // 4, projection.shape[1]
        cell_clip, projection_clip = clips
        gates = torch.empty_like(from_input)  # i, f, g, o
        cells = from_input.new_empty(directions, words, size)
        cells_before, squashed = torch.empty_like(cells), torch.empty_like(cells)
        states = from_input.new_empty(directions, words, projected)
        states_before = torch.empty_like(states)
        hidden, cell = start_hidden, start_cell
        for begin, count in steps:
            here = slice(begin, begin + count)
            hidden, cell = hidden[:, :count], cell[:, :count]
            states_before[:, here], cells_before[:, here] = hidden, cell
            total = torch.baddbmm(from_input[:, here], hidden, recurrent.mT)
            total[..., : 2 * size].sigmoid_()
            total[..., 2 * size : 3 * size].tanh_()
            total[..., 3 * size :].sigmoid_()
            i, f, g, o = total.split(size, dim=-1)
            cell = torch.addcmul(f * cell, i, g)
            if cell_clip is not None:
                cell = cell.clamp_(-cell_clip, cell_clip)
            tanh = cell.tanh()  # (direction, count, hidden)
            hidden = (o * tanh) @ projection.mT
            if projection_clip is not None:
                hidden = hidden.clamp_(-projection_clip, projection_clip)
            gates[:, here], cells[:, here], squashed[:, here] = total, cell, tanh
            states[:, here] = hidden
        ctx.save_for_backward(
            gates, cells, cells_before, squashed, states, states_before, recurrent, projection
        )
        ctx.clips, ctx.steps, ctx.rows = clips, steps, start_hidden.shape[1]
        ctx.set_materialize_grads(False)
        return states, cells

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        gates, cells, cells_before, tanh, states, states_before, recurrent, projection = (
            ctx.saved_tensors
        )
        directions, _, size = cells.shape
        cell_clip, projection_clip = ctx.clips
        i, f, g, o = gates.split(size, dim=-1)
        # What a gradient at c_t, or at o ⊙ tanh(c_t), is multiplied by on its way to each sum under
        # an activation.
        from_cell = torch.cat(
            [g * i * (1 - i), cells_before * f * (1 - f), i * (1 - g * g)], dim=-1
        ).unflatten(-1, (3, size))
        to_output = tanh * o * (1 - o)
        to_cell = o * (1 - tanh * tanh)
        free_cell = _inside(cells, cell_clip)
        free_state = _inside(states, projection_clip)
        at_states = torch.zeros_like(states) if gradients[0] is None else gradients[0].clone()
        at_cells = gradients[1]
        at_gates = torch.empty_like(gates)
        carried_hidden = states.new_zeros(directions, ctx.rows, states.shape[-1])
        carried_cell = cells.new_zeros(directions, ctx.rows, size)
        for begin, count in reversed(ctx.steps):
            here = slice(begin, begin + count)
            at_state = at_states[:, here].add_(carried_hidden[:, :count])
            if free_state is not None:
                at_state.mul_(free_state[:, here])
            at_shown = at_state @ projection  # (direction, count, hidden)
            at_cell = torch.addcmul(carried_cell[:, :count], at_shown, to_cell[:, here])
            if at_cells is not None:
                at_cell += at_cells[:, here]
            if free_cell is not None:
                at_cell.mul_(free_cell[:, here])
            total = at_gates[:, here]
            torch.mul(
                at_cell.unsqueeze(2),
                from_cell[:, here],
                out=total[..., : 3 * size].unflatten(-1, (3, size)),
            )
            torch.mul(at_shown, to_output[:, here], out=total[..., 3 * size :])
            carried_cell[:, :count] = at_cell * f[:, here]
            carried_hidden[:, :count] = total @ recurrent
        at_recurrent = at_gates.mT @ states_before
        at_projection = at_states.mT @ (o * tanh)
        return at_gates, carried_hidden, carried_cell, at_recurrent, at_projection, None, None


def _inside(numbers: Tensor, clip: float | None) -> Tensor | None:
    """1 where a number was not clipped, else 0; None where none can be."""
    return None if clip is None else (numbers.abs() < clip).to(numbers.dtype)
