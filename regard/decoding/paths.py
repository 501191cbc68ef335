"""Greedy decoding, and what it shares with sampling: one path a row, a word at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.decoding.ancestry import Ancestry
from regard.decoding.config import DecodingConfig
from regard.decoding.hypothesis import Hypothesis, LiveHypotheses, sort_by_score
from regard.decoding.packed import pack
from regard.decoding.rules import Rules, max_lengths
from regard.decoding.seam import B, Model, S, Stepper

Choice = Callable[[Tensor, Tensor, int], Tensor]
"""log P (row, vocabulary), the number of each row's path (row,) and the step → ids (row,)."""


class DecodedStep(NamedTuple):
    """The words chosen at one step, and the hypotheses that it finished."""

    ids: Tensor  # (row,), of the rows that could go on
    finished: list[tuple[int, Hypothesis]]  # each with the number of its path


def greedy(
    model: Model[B, S],
    batch: B,
    first: Tensor,
    config: DecodingConfig,
    *,
    end: int | None = None,
    never: Sequence[int] = (),
    ancestry: Ancestry | None = None,
) -> list[list[Hypothesis]]:
    """y_t = argmax P(y | y_<t): the likeliest word each time, one hypothesis for each row.

    `first` (batch,) are the ids the first step is fed, `end` is the id that ends an answer (None:
    only its length does), `never` are ids that must not be said.
    """
    rules = Rules.from_config(config, end, never)
    steps = decode_steps(model, batch, first, config, rules, choose_likeliest, ancestry)
    return collect_hypotheses(steps, first.numel())


def choose_likeliest(log_probs: Tensor, _paths: Tensor, _step: int) -> Tensor:
    """argmax, the first of equals."""
    return log_probs.argmax(dim=-1)


# As a decorator it leaves the caller's own gradients alone while the caller has its turn.
@torch.no_grad()
def decode_steps(
    model: Model[B, S],
    batch: B,
    first: Tensor,
    config: DecodingConfig,
    rules: Rules,
    choose: Choice,
    ancestry: Ancestry | None = None,
    copies: int = 1,
) -> Iterator[DecodedStep]:
    """Step until every path is finished; `copies` paths for each row of the batch."""
    if not first.numel():
        return
    stepper = Stepper(pack(model, config.weights), batch, first, ancestry)
    limits = max_lengths(config, batch, first).repeat_interleave(copies)  # (path,)
    rows = LiveHypotheses.start(torch.arange(len(limits), device=first.device))
    stepper.continue_with(rows.owners // copies)
    ids = first.repeat_interleave(copies)  # (row,)
    while len(ids):
        log_probs = rules.apply_(stepper.step(ids), rows.ids)
        ids = choose(log_probs, rows.owners, rows.step)
        chosen = log_probs.gather(1, ids.unsqueeze(1)).squeeze(1)  # (row,)
        stuck, ended = chosen.isneginf(), rules.is_end(ids)
        before, rows = rows, rows.append(ids, chosen)
        done = stuck | ended | (limits[rows.owners] == rows.step)
        finished = before.finish(config, stuck, rows=stepper.previous_parents, ended=~stuck)
        finished += rows.finish(config, done & ~stuck, rows=stepper.parents, ended=ended)
        yield DecodedStep(ids[~stuck], finished)
        if finished:
            live = (~done).nonzero().squeeze(1)
            stepper.continue_with(live)
            ids, rows = ids[live], rows.pick(live)


def collect_hypotheses(
    steps: Iterable[DecodedStep], batch: int, copies: int = 1
) -> list[list[Hypothesis]]:
    """For each row of the batch its hypotheses, best first."""
    collected: list[list[Hypothesis]] = [[] for _ in range(batch)]
    for step in steps:
        for path, hypothesis in step.finished:
            collected[path // copies].append(hypothesis)
    return [sort_by_score(hypotheses) for hypotheses in collected]
