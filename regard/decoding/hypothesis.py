"""Hypotheses: finished ones, which a decoder hands back, and live ones, which it extends."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from regard.decoding.config import DecodingConfig


@dataclass(frozen=True)
class Hypothesis:
    """One answer: its words, and what the model thinks of it.

    The end, when it came, is the last of the ids, so that each id is one step of the decoder and
    one row of a stitched map. `log_probability` is the model's own, whatever the temperature.
    """

    ids: tuple[int, ...]
    score: float  # log_probability / penalty(len(ids))
    log_probability: float
    ended: bool  # False when the words ran out of room, or no further word was possible
    row: int = field(default=0, repr=False, compare=False)
    """The row of the last step it was read from, where `Ancestry` begins to trace it."""


@dataclass(frozen=True)
class LiveHypotheses:
    """The unfinished hypotheses of a search, a row each, all of one length."""

    owners: Tensor  # (row,): the number of what the row belongs to, a path or a whole beam
    ids: Tensor  # (row, step)
    log_probabilities: Tensor  # (row,) of all ids so far, in double precision: long sums

    @classmethod
    def start(cls, owners: Tensor) -> LiveHypotheses:
        """Rows without any word yet."""
        zeros = torch.zeros(len(owners), dtype=torch.float64, device=owners.device)
        return cls(owners, owners.new_empty(len(owners), 0), zeros)

    @property
    def step(self) -> int:
        """How many words each row has."""
        return self.ids.shape[1]

    def pick(self, rows: Tensor) -> LiveHypotheses:
        """These rows, by number or by a boolean for each."""
        return LiveHypotheses(self.owners[rows], self.ids[rows], self.log_probabilities[rows])

    def append(self, words: Tensor, log_probs: Tensor) -> LiveHypotheses:
        """Each row with one more word (row,), whose log P is (row,)."""
        ids = torch.cat([self.ids, words.unsqueeze(1)], dim=1)  # (row, step + 1)
        return LiveHypotheses(self.owners, ids, self.log_probabilities + log_probs)

    def finish(
        self, config: DecodingConfig, which: Tensor, *, rows: Tensor, ended: Tensor
    ) -> list[tuple[int, Hypothesis]]:
        """The rows where `which` is True as hypotheses, each with its owner.

        `rows` (row,) are the rows of the step that each was read from.
        """
        if not bool(which.any()):
            return []
        done = self.pick(which)
        columns = (done.owners, done.ids, done.log_probabilities, ended[which], rows[which])
        return [
            (owner, Hypothesis(tuple(ids), total / config.penalty(len(ids)), total, over, row))
            for owner, ids, total, over, row in zip(*(c.tolist() for c in columns), strict=True)
        ]


def sort_by_score(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
    """Best first."""
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)
