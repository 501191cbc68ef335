"""Beam search as transformers does it: what has ended is set aside, and the beam stays full.

Which answers come out depends on what becomes of a hypothesis that ends, and on when the search
stops. `beam` lets it keep its place and stops when nothing can change any more; here a search gives
the same words as `generate` of Hugging Face's library, of version 5.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.decoding.ancestry import Ancestry
from regard.decoding.beams import select_survivors, top_words
from regard.decoding.config import DecodingConfig
from regard.decoding.hypothesis import Hypothesis, LiveHypotheses, sort_by_score
from regard.decoding.packed import pack
from regard.decoding.rules import Rules, max_lengths
from regard.decoding.seam import B, Model, S, Stepper


@torch.no_grad()
def hf_beam(
    model: Model[B, S],
    batch: B,
    first: Tensor,
    config: DecodingConfig,
    *,
    end: int | None = None,
    never: Sequence[int] = (),
    ancestry: Ancestry | None = None,
) -> list[list[Hypothesis]]:
    """Beam search that keeps the `beam` best finished hypotheses of each sentence aside.

    Of the 2 · `beam` best continuations those that end are set aside, if they are among the best
    `beam`; the best `beam` of the others go on. A sentence is done when `beam` are set aside and

        hf        log P(best live) / penalty(words so far) ≤ the worst score of these
        hf-never  log P(best live) / penalty(longest)      ≤ the worst score of these
        hf-early  at once

    The first is a guess, since a longer sentence may have a better score; it is their default.
    """
    if not first.numel():
        return []
    stepper = Stepper(pack(model, config.weights), batch, first, ancestry)
    rules = Rules.from_config(config, end, never)
    limits = max_lengths(config, batch, first)  # (sentence,)
    finished = BestFinished(config, limits)
    candidates_each = torch.full_like(limits, 2 * config.beam)
    rows = LiveHypotheses.start(torch.arange(len(first), device=first.device))
    ids = first  # (row,)
    while len(ids):
        log_probs = rules.apply(stepper.step(ids), rows.ids)
        top_log_probs, top_ids = top_words(log_probs, 2 * config.beam)  # (row, choice)
        stuck = top_log_probs[:, 0].isneginf()
        finished.add(rows.finish(config, stuck, rows=stepper.previous_parents, ended=~stuck))

        parents, chosen = select_survivors(rows, top_log_probs, candidates_each)
        words = top_ids[parents, chosen]
        rows = rows.pick(parents).append(words, top_log_probs[parents, chosen])
        ended = rules.is_end(words)
        done = ended | (limits[rows.owners] == rows.step)
        kept = done & (rank_within_owner(rows) < config.beam)
        finished.add(rows.finish(config, kept, rows=parents, ended=ended))

        live = (~done).nonzero().squeeze(1)
        live = live[rank_within_owner(rows.pick(live)) < config.beam]
        live = live[~finished.are_decided(rows.pick(live))[rows.owners[live]]]
        stepper.continue_with(parents[live])
        ids, rows = words[live], rows.pick(live)
    return finished.best()


def rank_within_owner(rows: LiveHypotheses) -> Tensor:
    """For each row (row,) how many of the same sentence are likelier."""
    likelihood = rows.log_probabilities.argsort(descending=True, stable=True)
    order = likelihood[rows.owners[likelihood].argsort(stable=True)]  # by sentence, best first
    _, counts = rows.owners[order].unique_consecutive(return_counts=True)
    begins = (counts.cumsum(dim=0) - counts).repeat_interleave(counts)
    ranks = torch.empty_like(order)
    ranks[order] = torch.arange(len(order), device=order.device) - begins
    return ranks


class BestFinished:
    """The best finished hypotheses of each sentence, as many as a beam is wide."""

    def __init__(self, config: DecodingConfig, limits: Tensor):
        self.config, self.limits = config, limits.tolist()
        self._hypotheses: list[list[Hypothesis]] = [[] for _ in self.limits]

    def add(self, finished: list[tuple[int, Hypothesis]]) -> None:
        """Take these in, each with the number of its sentence, and let go of the worst."""
        for sentence, hypothesis in finished:
            hypotheses = sort_by_score([*self._hypotheses[sentence], hypothesis])
            self._hypotheses[sentence] = hypotheses[: self.config.beam]

    def are_decided(self, live: LiveHypotheses) -> Tensor:
        """Which sentences (sentence,) go no further, given what could go on."""
        best = live.log_probabilities.new_full((len(self.limits),), -torch.inf)
        best = best.scatter_reduce(0, live.owners, live.log_probabilities, "amax")
        decided = [
            len(hypotheses) == self.config.beam
            and self._cannot_improve(hypotheses, value, live.step, limit)
            for hypotheses, value, limit in zip(
                self._hypotheses, best.tolist(), self.limits, strict=True
            )
        ]
        return torch.tensor(decided, device=live.owners.device)

    def _cannot_improve(
        self, hypotheses: list[Hypothesis], log_prob: float, words: int, limit: int
    ) -> bool:
        if self.config.stopping == "hf-early":
            return True
        length = limit if self.config.stopping == "hf-never" else words
        return log_prob / self.config.penalty(length) <= hypotheses[-1].score

    def best(self) -> list[list[Hypothesis]]:
        """For each sentence its `n_best` hypotheses, best first."""
        return [hypotheses[: self.config.n_best] for hypotheses in self._hypotheses]
