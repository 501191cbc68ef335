"""A GRU that looks at a memory before each step, over whole targets whose words are known.

e = vᵀ tanh(W_q h_{t-1} + k),  α = softmax(e),  c_t = Σ α m        where the state before would look
h_t = GRU(x_t, c_t, h_{t-1})

The results are those of the attention and the cell, step by step. Written so, autograd makes a
graph of two dozen small operations for each step and goes back through it, with a gradient as large
as the weights, the keys and the memory at every one. Here, as in `unpadded.py`, rows are sorted by
length, no padding of the target is computed, and the backward pass is written out: what belongs to
all steps is one product behind the loop. The pairs of state and key are compared as in
`regard.attention.additive`, tanh(q + k) = 1 − 2 r with r = 1 / (1 + e²ᑫ e²ᵏ), and compared anew on
the way back.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from regard.attention import Additive, Attention, Prepared, Softmax, is_watched
from regard.attention.additive import MAX_EXPONENT_SHARE, key_exponentials
from regard.layers.cells import GRUCell
from regard.layers.unpadded import Layout, gru_slopes, gru_step, refuse_second_derivative, shift
from regard.products import add_linear, linear, weight_gradient

BLOCK_NUMEL = 1 << 18
"""Numbers compared at once: a megabyte of float32, however many rows and keys there are."""


def can_run_attentive(attention: Attention, cell: GRUCell, source: Tensor) -> bool:
    """Whether `run_attentive` can take the place of steps through `attention` and `cell`.

    There must be something to learn on a CPU, and nobody may be watching or editing; rows without
    words in the source, lengths (row,), are left to the attention, which knows what to do.
    """
    weigh, score = attention.weigh, attention.score
    plain = isinstance(score, Additive) and score.query.bias is None
    plain = plain and isinstance(weigh, Softmax) and weigh.sharpness == 1.0
    plain = plain and not (attention.training and attention.dropout > 0.0)
    watched = is_watched(attention) or cell.listeners or torch.compiler.is_compiling()
    learning = torch.is_grad_enabled() and source.is_cpu and not torch.is_autocast_enabled("cpu")
    exact = cell.weight_hh.dtype in (torch.float32, torch.float64)
    return plain and learning and exact and not watched and bool((source > 0).all())


def run_attentive(
    attention: Attention,
    cell: GRUCell,
    words: Tensor,
    lengths: Tensor,
    start: Tensor,
    memory: Tensor,
    keys: Prepared,
    source: Tensor,
) -> tuple[Tensor, Tensor]:
    """words (row, time, input), of which `lengths` (row,) count, start (row, hidden), memory (row,
    key, memory) and its keys, of which `source` (row,) count → states (row, time, hidden) and
    contexts (row, time, memory), zeros at padding."""
    assert isinstance(attention.score, Additive)
    layout = Layout(lengths.clamp(min=1))  # an empty row gets one word of padding
    from_word, from_context = cell.weight_ih.split([words.shape[-1], memory.shape[-1]], dim=1)
    visible = torch.arange(memory.shape[1]) < source[layout.order].unsqueeze(1)
    states, contexts = _AttentiveSteps.apply(  # type: ignore[no-untyped-call]
        linear(layout.pack(words), from_word, cell.bias_ih),
        start[layout.order],
        memory[layout.order],
        keys.keys[layout.order],
        torch.where(visible, 0.0, -math.inf).to(memory.dtype),
        layout.steps,
        attention.score.query.weight,
        attention.score.direction,
        from_context.contiguous(),
        cell.weight_hh,
        cell.bias_hh,
    )
    return layout.pad(states, words.shape[1]), layout.pad(contexts, words.shape[1])


class _AttentiveSteps(torch.autograd.Function):
    """from_words (word, 3 · hidden) are W x + b of all words, start (row, hidden), memory (row,
    key, memory), keys (row, key, attention), hidden_keys (row, key) 0 or −∞ → states and contexts
    of every word, (word, hidden) and (word, memory)."""

    @staticmethod
    def forward(
        ctx: Any,
        from_words: Tensor,
        start: Tensor,
        memory: Tensor,
        keys: Tensor,
        hidden_keys: Tensor,
        steps: list[tuple[int, int]],
        *weights: Tensor,
    ) -> tuple[Tensor, Tensor]:
        query, direction, context_weight, state_weight, bias = weights
        words, size, attention_size = len(from_words), start.shape[1], len(direction)
        both = torch.cat([2 * query, state_weight])  # 2 W_q h and U h in one product
        both_bias = torch.cat([bias.new_zeros(attention_size), bias])
        ratio, by = _Ratio(keys, query, start), -2 * direction
        states = start.new_empty(words, size)
        contexts = start.new_empty(words, memory.shape[2])
        queries = start.new_empty(words, attention_size)
        alignment = start.new_empty(words, memory.shape[1])
        gates, candidates = torch.empty_like(from_words), torch.empty_like(states)
        hidden = start
        for begin, count in steps:
            here = slice(begin, begin + count)
            hidden = hidden[:count]
            total = linear(hidden, both, both_bias)  # (count, attention + 3 · hidden)
            queries[here] = total[:, :attention_size]
            scores = torch.empty_like(alignment[here])  # (count, key)
            for rows, r in ratio.blocks(queries[here]):
                torch.mv(r.flatten(0, 1), by, out=scores[rows].view(-1))
            torch.softmax(scores.add_(hidden_keys[:count]), dim=-1, out=alignment[here])
            torch.bmm(alignment[here, None], memory[:count], out=contexts[here, None])
            inputs = add_linear(from_words[here], contexts[here], context_weight)
            from_state = total[:, attention_size:]
            out = (gates[here], candidates[here], states[here])
            hidden = gru_step(inputs, from_state, hidden, *out)
        ctx.save_for_backward(
            start, memory, keys, queries, alignment, contexts, gates, candidates, states, *weights
        )
        ctx.steps = steps
        return states, contexts

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivative("a GRU that looks")
        start, memory, keys, queries, alignment, contexts, gates, candidates, states, *weights = (
            ctx.saved_tensors
        )
        query, direction, context_weight, state_weight, _ = weights
        words, size, attention_size = len(states), start.shape[1], len(direction)
        at_states, at_contexts = (gradient.contiguous() for gradient in gradients)
        before = shift(states[None], start[None], ctx.steps)[0]  # (word, hidden)
        factors = gru_slopes(gates, candidates, before)  # (word, 3, hidden)
        reset, update, _ = gates.split(size, dim=-1)
        both_turned = torch.cat([query, state_weight]).T
        ratio, by = _Ratio(keys, query, start), 4 * direction
        at_inputs = torch.empty_like(factors)
        at_both = states.new_empty(words, attention_size + 3 * size)  # at 2 W_q h and U h + b
        at_direction = torch.empty_like(queries)
        at_keys = torch.zeros_like(keys)
        looked = states.new_zeros(len(start), len(ctx.steps), memory.shape[1])
        at_looked = states.new_zeros(len(start), len(ctx.steps), memory.shape[2])
        carried = torch.zeros_like(start)
        for time, (begin, count) in reversed(list(enumerate(ctx.steps))):
            here = slice(begin, begin + count)
            gradient = carried[:count].add_(at_states[here])
            into = torch.mul(gradient.unsqueeze(1), factors[here], out=at_inputs[here])
            both = at_both[here]
            both[:, attention_size:] = into.flatten(1)
            both[:, -size:].mul_(reset[here])
            at_context = add_linear(at_contexts[here], into.flatten(1), context_weight.T)
            looked[:count, time], at_looked[:count, time] = alignment[here], at_context
            # The row on the left: turned around, MKL takes ten times as long.
            at_weights = torch.bmm(at_context.unsqueeze(1), memory[:count].mT).squeeze(1)
            weighted = at_weights.mul_(alignment[here])
            at_scores = weighted.addcmul_(
                alignment[here], weighted.sum(dim=1, keepdim=True), value=-1
            )  # (count, key)
            at_ratio, at_query = at_direction[here], torch.empty_like(queries[here])
            for rows, r in ratio.blocks(queries[here]):
                torch.bmm(at_scores[rows, None], r, out=at_ratio[rows, None])
                slope = r.addcmul_(r, r, value=-1)  # a quarter of tanh′
                torch.bmm(at_scores[rows, None], slope, out=at_query[rows, None])
                at_keys[rows].addcmul_(slope, at_scores[rows].unsqueeze(2))
            torch.mul(at_query, by, out=both[:, :attention_size])
            back = linear(both, both_turned)
            torch.addcmul(back, gradient, update[here], out=carried[:count])
        at_both_weights = weight_gradient(at_both, before)
        at_inputs = at_inputs.flatten(1)  # (word, 3 · hidden)
        return (
            at_inputs,
            carried,
            torch.bmm(looked.mT, at_looked),
            at_keys.mul_(by),
            None,
            None,
            at_both_weights[:attention_size],
            -2 * at_direction.sum(dim=0),
            weight_gradient(at_inputs, contexts),
            at_both_weights[attention_size:],
            at_both[:, attention_size:].sum(dim=0),
        )


class _Ratio:
    """r = 1 / (1 + e²ᑫ e²ᵏ) of states with all their keys, given 2 q: (row, key, attention)"""

    def __init__(self, keys: Tensor, query_weight: Tensor, start: Tensor):
        # A GRU's state lies between −1 and 1, or where it started, so this bounds every query.
        largest_state = max(1.0, float(start.abs().max()))
        largest_query = float(query_weight.abs().sum(dim=1).max()) * largest_state
        in_range = largest_query < MAX_EXPONENT_SHARE * math.log(torch.finfo(keys.dtype).max)
        self.exponentials = key_exponentials(keys) if in_range else None
        self.negative = -2 * keys if self.exponentials is None else None
        self.one = keys.new_ones(())
        self.step = max(1, BLOCK_NUMEL // max(keys[0].numel(), 1))
        # One piece of memory for all blocks, which stays in the cache.
        self.scratch = keys.new_empty(min(self.step, len(keys)), *keys.shape[1:])

    def blocks(self, twice_queries: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Some rows at a time: which, and r of them, to be used before the next are asked for."""
        for first in range(0, len(twice_queries), self.step):
            rows = slice(first, min(first + self.step, len(twice_queries)))
            yield rows, self._compute(twice_queries[rows].unsqueeze(1), rows)

    def _compute(self, twice_queries: Tensor, rows: slice) -> Tensor:
        out = self.scratch[: len(twice_queries)]
        if self.exponentials is not None:
            e = twice_queries.exp()  # (row, 1, attention)
            return torch.addcmul(self.one, e, self.exponentials[rows], out=out).reciprocal_()
        assert self.negative is not None
        return torch.sub(self.negative[rows], twice_queries, out=out).sigmoid_()
