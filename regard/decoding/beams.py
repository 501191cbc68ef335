"""Several hypotheses for each sentence side by side, the better ones going on."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.decoding.ancestry import Ancestry
from regard.decoding.config import DecodingConfig
from regard.decoding.hypothesis import Hypothesis, Rows
from regard.decoding.rules import Rules, limits
from regard.decoding.seam import B, Model, S, Walk


@torch.no_grad()
def beam(
    model: Model[B, S],
    batch: B,
    first: Tensor,
    config: DecodingConfig,
    *,
    end: int | None = None,
    never: Sequence[int] = (),
    ancestry: Ancestry | None = None,
) -> list[list[Hypothesis]]:
    """The best continuations of the best beginnings: `beam` hypotheses a sentence, `n_best` back.

    A hypothesis that has ended keeps its place in the beam, so a beam of 1 is greedy. A sentence
    is done when its `n_best` closed hypotheses are at least as good as anything that is under way
    can become. Words only lower log P, and the penalty is largest at the longest length, so that is

        log P(under way) / penalty(longest) ≤ score of the n-th best closed

    and stopping there changes no answer. `first`, `end` and `never` are as in `greedy`.

    Graves (2012), section 2.5; Sutskever, Vinyals & Le (2014), section 3.2.
    """
    if not first.numel():
        return []
    walk, rules = Walk(model, batch, first, ancestry), Rules.of(config, end, never)
    most = limits(config, batch, first)  # (sentence,)
    shelf = Shelf(config, most)
    rows = Rows.begun(torch.arange(len(first), device=first.device))
    ids = first  # (row,)
    while len(ids):
        logs = rules.allowed(walk.step(ids), rows.said)
        gains, words = choices(logs, config.beam)  # (row, choice)
        stuck = gains[:, 0].isneginf()
        shelf.put(rows.closed(config, stuck, places=walk.came_from, ended=~stuck))

        parents, chosen = survivors(rows, gains, shelf.room)
        ids = words[parents, chosen]
        rows = rows.pick(parents).say(ids, gains[parents, chosen])
        ended = rules.ends(ids)
        over = ended | (most[rows.owners] == rows.step)
        shelf.put(rows.closed(config, over, places=parents, ended=ended))

        on = (~over & ~shelf.done(rows, ~over)[rows.owners]).nonzero().squeeze(1)
        walk.keep(parents[on])
        ids, rows = ids[on], rows.pick(on)
    return shelf.best()


def choices(logs: Tensor, beam: int) -> tuple[Tensor, Tensor]:
    """The likeliest next words of each row, log P and id, (row, choice).

    No row can have more survivors than the beam is wide, so the vocabulary ends here.
    """
    if beam == 1:  # as greedy does it: the first of equals, which topk leaves open
        gains, words = logs.max(dim=-1, keepdim=True)
    else:
        gains, words = logs.topk(min(beam, logs.shape[1]), dim=-1)
    return gains.double(), words


def survivors(rows: Rows, gains: Tensor, room: Tensor) -> tuple[Tensor, Tensor]:
    """The best continuations of each sentence, as many as it has room (sentence,) for.

    Each as the row it goes on from and the choice it makes there, by rows: when every row has one
    survivor the order is as it was, and no state has to be picked.
    """
    sentences, places, counts = rows.owners.unique_consecutive(
        return_inverse=True, return_counts=True
    )
    begins = counts.cumsum(dim=0) - counts  # (sentence,): its first row
    slots = torch.arange(len(places), device=places.device) - begins[places]  # (row,)
    width, breadth = int(counts.max()), gains.shape[1]
    table = gains.new_full((len(sentences), width, breadth), -torch.inf)
    table[places, slots] = rows.sums.unsqueeze(1) + gains
    ranked, order = table.flatten(1).sort(dim=1, descending=True, stable=True)
    ranks = torch.arange(ranked.shape[1], device=ranked.device)
    taken = (ranks < room[sentences].unsqueeze(1)) & (ranked > -torch.inf)
    cells = order[taken]
    parents = begins[taken.nonzero()[:, 0]] + cells // breadth
    parents, by_row = parents.sort(stable=True)
    return parents, (cells % breadth)[by_row]


class Shelf:
    """The closed hypotheses of each sentence."""

    def __init__(self, config: DecodingConfig, most: Tensor):
        self.config = config
        self.room = torch.full_like(most, config.beam)  # (sentence,): places left in its beam
        self._found: list[list[Hypothesis]] = [[] for _ in most]
        penalties = [config.penalty(words) for words in most.tolist()]
        self._penalties = torch.tensor(penalties, dtype=torch.float64, device=most.device)
        self._bar = torch.full_like(self._penalties, -torch.inf)  # what must be beaten

    def put(self, closed: list[tuple[int, Hypothesis]]) -> None:
        """Take these in, each with the number of its sentence."""
        for sentence, hypothesis in closed:
            found = self._found[sentence]
            found.append(hypothesis)
            self.room[sentence] -= 1
            if len(found) >= self.config.n_best:
                self._bar[sentence] = _ranked(found)[self.config.n_best - 1].score

    def done(self, rows: Rows, live: Tensor) -> Tensor:
        """Which sentences (sentence,) have no live row (row,) that could still be handed back."""
        best = torch.full_like(self._bar, -torch.inf)
        best = best.scatter_reduce(0, rows.owners, rows.sums.where(live, -torch.inf), "amax")
        return best / self._penalties <= self._bar

    def best(self) -> list[list[Hypothesis]]:
        """For each sentence its hypotheses, best first."""
        return [_ranked(found)[: self.config.n_best] for found in self._found]


def _ranked(found: list[Hypothesis]) -> list[Hypothesis]:
    return sorted(found, key=lambda hypothesis: -hypothesis.score)
