"""What a decoder hands back, and what it has in hand until then."""

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
class Rows:
    """The hypotheses under way, a row each, all of one length."""

    owners: Tensor  # (row,): the number of what the row belongs to, a path or a whole beam
    said: Tensor  # (row, step)
    sums: Tensor  # (row,): log P of what was said, in double precision since it grows long

    @classmethod
    def begun(cls, owners: Tensor) -> Rows:
        """Nothing said yet."""
        sums = torch.zeros(len(owners), dtype=torch.float64, device=owners.device)
        return cls(owners, owners.new_empty(len(owners), 0), sums)

    @property
    def step(self) -> int:
        """How many words each row has."""
        return self.said.shape[1]

    def pick(self, rows: Tensor) -> Rows:
        """These rows, by number or by a boolean for each."""
        return Rows(self.owners[rows], self.said[rows], self.sums[rows])

    def say(self, ids: Tensor, gains: Tensor) -> Rows:
        """A word more in each row, and its log-probability (row,)."""
        said = torch.cat([self.said, ids.unsqueeze(1)], dim=1)  # (row, step + 1)
        return Rows(self.owners, said, self.sums + gains)

    def closed(
        self, config: DecodingConfig, which: Tensor, *, places: Tensor, ended: Tensor
    ) -> list[tuple[int, Hypothesis]]:
        """The rows where `which` is True as hypotheses, each with its owner.

        `places` (row,) are the rows of the step that each was read from.
        """
        if not bool(which.any()):
            return []
        done = self.pick(which)
        columns = (done.owners, done.said, done.sums, ended[which], places[which])
        return [
            (owner, Hypothesis(tuple(ids), total / config.penalty(len(ids)), total, over, place))
            for owner, ids, total, over, place in zip(*(c.tolist() for c in columns), strict=True)
        ]
