"""Beam search: several hypotheses for each sentence side by side, the better ones going on."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.decoding.ancestry import Ancestry
from regard.decoding.config import DecodingConfig
from regard.decoding.hypothesis import Hypothesis, LiveHypotheses, sort_by_score
from regard.decoding.packed import pack
from regard.decoding.rules import Rules, max_lengths
from regard.decoding.seam import B, Model, S, Stepper

WORDS_PER_BLOCK = 16
"""Of a vocabulary, when its likeliest words are looked for."""


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
    """Beam search: the `beam` best hypotheses of each sentence go on, the `n_best` come back.

    A hypothesis that has ended keeps its place in the beam, so a beam of 1 is greedy. A sentence
    is done when its `n_best` finished hypotheses are at least as good as any live one can become.
    Words only lower log P, and the penalty is largest at the longest length, so that is

        log P(live) / penalty(longest) ≤ score of the n-th best finished

    and stopping there changes no answer. `first`, `end` and `never` are as in `greedy`.

    Graves (2012), section 2.5; Sutskever, Vinyals & Le (2014), section 3.2.
    """
    if not first.numel():
        return []
    stepper = Stepper(pack(model, config.weights), batch, first, ancestry)
    rules = Rules.from_config(config, end, never)
    limits = max_lengths(config, batch, first)  # (sentence,)
    finished = FinishedHypotheses(config, limits)
    rows = LiveHypotheses.start(torch.arange(len(first), device=first.device))
    ids = first  # (row,)
    while len(ids):
        log_probs = rules.apply(stepper.step(ids), rows.ids)
        top_log_probs, top_ids = top_words(log_probs, config.beam)  # (row, choice)
        stuck = top_log_probs[:, 0].isneginf()
        finished.add(rows.finish(config, stuck, rows=stepper.previous_parents, ended=~stuck))

        parents, chosen = select_survivors(rows, top_log_probs, finished.open_slots)
        ids = top_ids[parents, chosen]
        rows = rows.pick(parents).append(ids, top_log_probs[parents, chosen])
        ended = rules.is_end(ids)
        done = ended | (limits[rows.owners] == rows.step)
        finished.add(rows.finish(config, done, rows=parents, ended=ended))

        decided = finished.are_decided(rows, ~done)  # (sentence,)
        live = (~done & ~decided[rows.owners]).nonzero().squeeze(1)
        stepper.continue_with(parents[live])
        ids, rows = ids[live], rows.pick(live)
    return finished.best()


def top_words(log_probs: Tensor, beam: int) -> tuple[Tensor, Tensor]:
    """The likeliest next words of each row, log P and id, (row, choice).

    No row can have more survivors than the beam is wide, so the vocabulary ends here.
    """
    if beam == 1:  # as greedy does it: the first of equals, which topk leaves open
        top_log_probs, ids = log_probs.max(dim=-1, keepdim=True)
    else:
        top_log_probs, ids = top_of_blocks(log_probs, min(beam, log_probs.shape[1]))
    return top_log_probs.double(), ids


def top_of_blocks(log_probs: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`log_probs.topk(count)`, (row, count): values and ids.

    The `count` likeliest words stand in the `count` blocks with the likeliest words at the top. To
    find the top of every block is quicker than to sort a vocabulary. A block is every n-th word of
    n blocks, so that a CPU compares many blocks at a time.
    """
    rows, vocabulary = log_probs.shape
    blocks = vocabulary // WORDS_PER_BLOCK
    if blocks <= count:
        return log_probs.topk(count, dim=-1)
    whole = blocks * WORDS_PER_BLOCK
    tops = log_probs[:, :whole].unflatten(1, (WORDS_PER_BLOCK, blocks)).amax(dim=1)
    best = tops.topk(count, dim=-1).indices  # (row, count): blocks
    members = torch.arange(0, whole, blocks, device=best.device)
    words = (best.unsqueeze(-1) + members).flatten(1)  # (row, count · words)
    rest = torch.arange(whole, vocabulary, device=best.device).expand(rows, -1)
    candidates = torch.cat([words, rest], dim=1)
    values, places = log_probs.gather(1, candidates).topk(count, dim=-1)
    return values, candidates.gather(1, places)


def select_survivors(
    rows: LiveHypotheses, top_log_probs: Tensor, open_slots: Tensor
) -> tuple[Tensor, Tensor]:
    """The best continuations of each sentence, as many as its beam has open slots (sentence,).

    Each as the row it goes on from and the choice it makes there, by rows: when every row has one
    survivor the order is as it was, and no state has to be picked.
    """
    sentences, indices, counts = rows.owners.unique_consecutive(
        return_inverse=True, return_counts=True
    )
    begins = counts.cumsum(dim=0) - counts  # (sentence,): its first row
    slots = torch.arange(len(indices), device=indices.device) - begins[indices]  # (row,)
    width, choices = int(counts.max()), top_log_probs.shape[1]
    totals = top_log_probs.new_full((len(sentences), width, choices), -torch.inf)
    totals[indices, slots] = rows.log_probabilities.unsqueeze(1) + top_log_probs
    ranked, order = totals.flatten(1).sort(dim=1, descending=True, stable=True)
    ranks = torch.arange(ranked.shape[1], device=ranked.device)
    survives = (ranks < open_slots[sentences].unsqueeze(1)) & (ranked > -torch.inf)
    cells = order[survives]
    parents = begins[survives.nonzero()[:, 0]] + cells // choices
    parents, by_row = parents.sort(stable=True)
    return parents, (cells % choices)[by_row]


class FinishedHypotheses:
    """The finished hypotheses of each sentence."""

    def __init__(self, config: DecodingConfig, limits: Tensor):
        self.config = config
        self.open_slots = torch.full_like(limits, config.beam)  # (sentence,), of its beam
        self._hypotheses: list[list[Hypothesis]] = [[] for _ in limits]
        penalties = [config.penalty(words) for words in limits.tolist()]
        self._penalties = torch.tensor(penalties, dtype=torch.float64, device=limits.device)
        self._score_to_beat = torch.full_like(self._penalties, -torch.inf)

    def add(self, finished: list[tuple[int, Hypothesis]]) -> None:
        """Take these in, each with the number of its sentence."""
        n_best = self.config.n_best
        for sentence, hypothesis in finished:
            hypotheses = self._hypotheses[sentence]
            hypotheses.append(hypothesis)
            self.open_slots[sentence] -= 1
            if len(hypotheses) >= n_best:
                self._score_to_beat[sentence] = sort_by_score(hypotheses)[n_best - 1].score

    def are_decided(self, rows: LiveHypotheses, live: Tensor) -> Tensor:
        """Which sentences (sentence,) have no live row (row,) that could still be handed back."""
        best = torch.full_like(self._score_to_beat, -torch.inf)
        log_probs = rows.log_probabilities.where(live, -torch.inf)
        best = best.scatter_reduce(0, rows.owners, log_probs, "amax")
        return best / self._penalties <= self._score_to_beat

    def best(self) -> list[list[Hypothesis]]:
        """For each sentence its `n_best` hypotheses, best first."""
        return [sort_by_score(each)[: self.config.n_best] for each in self._hypotheses]
