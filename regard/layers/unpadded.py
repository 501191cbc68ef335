"""A GRU over sequences of different lengths that computes no padding, forward and backward.

Rows are sorted by length and laid out time step by time step, as torch packs them: step t has the
n_t rows that are longer than t, and n_t falls. Read backward, a row begins at its own last word, so
both directions have the same n_t and go through the steps together, as one batched product.

torch's packed kernel lays words out alike, but its backward pass is put together by autograd from
every operation of every step: it makes a gradient as large as the whole batch at each. Here the
backward pass is written out. What does not depend on later steps is worked out for all words at
once, and a step is left with few operations.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.products import linear, takes_onednn, weight_gradient


class Layout:
    """Where each word of a padded batch stands when there is no padding between them."""

    def __init__(self, lengths: Tensor):
        self.order = lengths.argsort(descending=True, stable=True)  # (row,): the longest first
        self.back = self.order.argsort()
        sorted_lengths = lengths[self.order]
        times = torch.arange(int(sorted_lengths[0]) if len(lengths) else 0)
        self.counts = (sorted_lengths.unsqueeze(0) > times.unsqueeze(1)).sum(dim=1)  # (time,)
        begins = self.counts.cumsum(0) - self.counts
        time = torch.repeat_interleave(times, self.counts)  # (word,)
        row = torch.arange(len(time)) - begins[time]
        self.rows, self.times = self.order[row], time  # of each word, in the padded batch
        last = sorted_lengths[row] - 1 - time  # the time of the same word, read from the end
        self.mirror = begins[last] + row  # (word,): where that is; the mirror of a mirror is here
        ends = begins[(sorted_lengths - 1).clamp(min=0)] + torch.arange(len(lengths))
        self.ends = ends[self.back]  # (row,): where the last word of each row stands
        self.steps = list(zip(begins.tolist(), self.counts.tolist(), strict=True))

    def pack(self, padded: Tensor) -> Tensor:
        """(row, time, size) → (word, size)."""
        places = self.rows * padded.shape[1] + self.times
        packed: Tensor = _Gather.apply(padded.flatten(0, 1), places)  # type: ignore[no-untyped-call]
        return packed

    def pad(self, words: Tensor, time: int) -> Tensor:
        """(word, size) → (row, time, size), zeros at padding."""
        rows, places = len(self.order), self.rows * time + self.times
        padded: Tensor = _Scatter.apply(words, places, rows * time)  # type: ignore[no-untyped-call]
        return padded.view(rows, time, -1)

    def reverse(self, words: Tensor) -> Tensor:
        """(word, size), those of each row last to first."""
        reversed_words: Tensor = _Gather.apply(words, self.mirror)  # type: ignore[no-untyped-call]
        return reversed_words


class _Gather(torch.autograd.Function):
    """Some rows of a matrix, each once at most: torch would add up gradients, which takes long."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, places: Tensor) -> Tensor:
        ctx.places, ctx.rows = places, len(table)
        return table.index_select(0, places)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return _Scatter.apply(gradients[0], ctx.places, ctx.rows), None  # type: ignore[no-untyped-call]


class _Scatter(torch.autograd.Function):
    """A matrix with these rows at these places, and zeros elsewhere."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, places: Tensor, count: int) -> Tensor:
        ctx.places = places
        return rows.new_zeros(count, *rows.shape[1:]).index_add_(0, places, rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return _Gather.apply(gradients[0], ctx.places), None, None  # type: ignore[no-untyped-call]


class GRUSteps(torch.autograd.Function):
    """All steps of a GRU, both directions at once: see `GRUCell` for the formula.

    from_input (direction, word, 3 · hidden) are W x + b of all words, start (direction, row,
    hidden) the states before the first → the states behind every word (direction, word, hidden).
    """

    @staticmethod
    def forward(
        ctx: Any,
        from_input: Tensor,
        start: Tensor,
        weight: Tensor,
        bias: Tensor,
        steps: list[tuple[int, int]],
    ) -> Tensor:
        directions, words, _ = from_input.shape
        size = weight.shape[-1]
        states = from_input.new_empty(directions, words, size)
        gates = from_input.new_empty(directions, words, 3 * size)  # r, z, U h + b′ of the candidate
        candidates = torch.empty_like(states)
        hidden = start
        for begin, count in steps:
            here = slice(begin, begin + count)
            hidden = hidden[:, :count]
            from_state = multiply(hidden, weight, bias)  # (direction, count, 3 · hidden)
            out = (gates[:, here], candidates[:, here], states[:, here])
            hidden = gru_step(from_input[:, here], from_state, hidden, *out)
        before = shift(states, start, steps)  # h_{t-1} of every word
        ctx.save_for_backward(before, gates, candidates, weight)
        ctx.steps, ctx.rows = steps, start.shape[1]
        return states

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivative("a GRU over padded rows")
        before, gates, candidates, weight = ctx.saved_tensors
        directions, words, size = before.shape
        r, z, _ = gates.split(size, dim=-1)
        factors = gru_slopes(gates, candidates, before)  # (direction, word, 3, hidden)
        to_candidate = factors[:, :, 2].clone()
        factors[:, :, 2].mul_(r)  # to U h + b′, which r lets through
        at_states = gradients[0].contiguous().clone()  # (direction, word, hidden)
        at_gates = gates.new_empty(directions, words, 3, size)
        carried = gates.new_zeros(directions, ctx.rows, size)
        for begin, count in reversed(ctx.steps):
            here = slice(begin, begin + count)
            gradient = at_states[:, here].add_(carried[:, :count])
            total = torch.mul(gradient.unsqueeze(2), factors[:, here], out=at_gates[:, here])
            back = multiply(total.flatten(2), weight.mT)
            torch.addcmul(back, gradient, z[:, here], out=carried[:, :count])
        at_gates = at_gates.flatten(2)  # (direction, word, 3 · hidden)
        at_weight = weight_gradients(at_gates, before)
        at_inputs = torch.cat([at_gates[..., : 2 * size], at_states * to_candidate], dim=-1)
        return at_inputs, carried, at_weight, at_gates.sum(dim=1), None


def refuse_second_derivative(of: str) -> None:
    """In a backward pass that is written out: torch's `once_differentiable` would say nothing and
    leave a part of the second derivative out."""
    if torch.is_grad_enabled():
        raise RuntimeError(f"{of} has no second derivative: create_graph must be False")


def gru_step(
    from_input: Tensor,
    from_state: Tensor,
    hidden: Tensor,
    gates: Tensor,
    candidate: Tensor,
    state: Tensor,
) -> Tensor:
    """The state after a word, given W x + b and U h + b′ (…, 3 · hidden). The last three are
    written to: what the backward pass needs, and the state, which is returned."""
    size = hidden.shape[-1]
    both = torch.add(
        from_input[..., : 2 * size], from_state[..., : 2 * size], out=gates[..., : 2 * size]
    )
    r, z = both.sigmoid_().split(size, dim=-1)
    kept = gates[..., 2 * size :].copy_(from_state[..., 2 * size :])
    torch.addcmul(from_input[..., 2 * size :], r, kept, out=candidate).tanh_()
    return torch.lerp(candidate, hidden, z, out=state)


def gru_slopes(gates: Tensor, candidates: Tensor, before: Tensor) -> Tensor:
    """What a gradient at h_t is multiplied by on its way to the sum under r, under z and under the
    candidate's tanh: (…, 3, hidden)."""
    r, z, from_state = gates.chunk(3, dim=-1)
    slopes = gates.new_empty(*before.shape[:-1], 3, before.shape[-1])
    to_reset, to_update, to_candidate = slopes.unbind(dim=-2)
    # (1 − z) (1 − n²), then (h − n) z (1 − z), then the first · U h · r (1 − r), with few passes
    torch.addcmul(gates.new_ones(()), candidates, candidates, value=-1, out=to_candidate)
    to_candidate.addcmul_(to_candidate, z, value=-1)
    torch.addcmul(z, z, z, value=-1, out=to_update).mul_(before - candidates)
    torch.addcmul(r, r, r, value=-1, out=to_reset).mul_(to_candidate).mul_(from_state)
    return slopes


def shift(states: Tensor, start: Tensor, steps: list[tuple[int, int]]) -> Tensor:
    """The state before every word, (direction, word, hidden), given those behind them."""
    counts = [count for _, count in steps]
    before = [start[:, : counts[0]]]
    for (begin, _), count in zip(steps, counts[1:], strict=False):
        before.append(states[:, begin : begin + count])
    return torch.cat(before, dim=1)


def multiply(states: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """W h + b of each direction: (direction, row, in), (direction, out, in) → (…, row, out)"""
    if not takes_onednn(states[0], weight[0]):
        if bias is None:
            return torch.bmm(states, weight.mT)
        return torch.baddbmm(bias.unsqueeze(1), states, weight.mT)
    biases = [None] * len(states) if bias is None else bias
    parts = [linear(*each) for each in zip(states, weight, biases, strict=True)]
    return parts[0].unsqueeze(0) if len(parts) == 1 else torch.stack(parts)


def weight_gradients(gradients: Tensor, inputs: Tensor) -> Tensor:
    """Of each direction: (direction, word, out), (direction, word, in) → (direction, out, in)"""
    return torch.stack([weight_gradient(*pair) for pair in zip(gradients, inputs, strict=True)])
