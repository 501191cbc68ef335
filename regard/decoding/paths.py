"""One path for each row, a word at a time: what greedy and sampling have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.decoding.ancestry import Ancestry
from regard.decoding.config import DecodingConfig
from regard.decoding.hypothesis import Hypothesis, Rows
from regard.decoding.rules import Rules, limits
from regard.decoding.seam import B, Model, S, Walk

Choice = Callable[[Tensor, Tensor, int], Tensor]
"""log P (row, vocabulary), the number of each row's path (row,) and the step → ids (row,)."""


class Turn(NamedTuple):
    """What one step brought."""

    ids: Tensor  # (row,), of the rows that could say something
    closed: list[tuple[int, Hypothesis]]  # the paths that go no further, by their number


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
    rules = Rules.of(config, end, never)
    taken = turns(model, batch, first, config, rules, likeliest, ancestry)
    return gathered(taken, first.numel())


def likeliest(logs: Tensor, _paths: Tensor, _step: int) -> Tensor:
    """The first of equals, if there are."""
    return logs.argmax(dim=-1)


# As a decorator it leaves the caller's own gradients alone while the caller has its turn.
@torch.no_grad()
def turns(
    model: Model[B, S],
    batch: B,
    first: Tensor,
    config: DecodingConfig,
    rules: Rules,
    choose: Choice,
    ancestry: Ancestry | None = None,
    copies: int = 1,
) -> Iterator[Turn]:
    """Say words until every path is closed; `copies` paths for each row of the batch."""
    if not first.numel():
        return
    walk = Walk(model, batch, first, ancestry)
    most = limits(config, batch, first).repeat_interleave(copies)  # (path,)
    rows = Rows.begun(torch.arange(len(most), device=first.device))
    walk.keep(rows.owners // copies)
    ids = first.repeat_interleave(copies)  # (row,)
    while len(ids):
        logs = rules.allowed(walk.step(ids), rows.said)
        ids = choose(logs, rows.owners, rows.step)
        gains = logs.gather(1, ids.unsqueeze(1)).squeeze(1)  # (row,)
        stuck, ended = gains.isneginf(), rules.ends(ids)
        before, rows = rows, rows.say(ids, gains)
        over = stuck | ended | (most[rows.owners] == rows.step)
        closed = before.closed(config, stuck, places=walk.came_from, ended=~stuck)
        closed += rows.closed(config, over & ~stuck, places=walk.parents, ended=ended)
        yield Turn(ids[~stuck], closed)
        if closed:
            on = (~over).nonzero().squeeze(1)
            walk.keep(on)
            ids, rows = ids[on], rows.pick(on)


def gathered(taken: Iterable[Turn], batch: int, copies: int = 1) -> list[list[Hypothesis]]:
    """For each row of the batch its hypotheses, best first."""
    found: list[list[Hypothesis]] = [[] for _ in range(batch)]
    for turn in taken:
        for path, hypothesis in turn.closed:
            found[path // copies].append(hypothesis)
    return [sorted(some, key=lambda one: -one.score) for some in found]
