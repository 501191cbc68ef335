"""What must not be said now, and how much may be said at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.data.batches import Pairs
from regard.decoding.config import DecodingConfig


@dataclass(frozen=True)
class Rules:
    """Bars words by setting their log P to -inf; that of the others stays what the model says."""

    end: int | None
    never: tuple[int, ...]
    shortest: int
    no_repeat_ngram: int | None

    @classmethod
    def of(cls, config: DecodingConfig, end: int | None, never: Sequence[int]) -> Rules:
        return cls(end, tuple(never), config.shortest, config.no_repeat_ngram)

    def allowed(self, logs: Tensor, said: Tensor) -> Tensor:
        """log P (row, vocabulary) of what may follow what each row has said (row, step) so far."""
        self._check(logs.shape[1])
        barred = list(self.never)
        if self.end is not None and said.shape[1] < self.shortest:
            barred.append(self.end)
        if barred:
            logs = logs.index_fill(1, torch.tensor(barred, device=logs.device), -torch.inf)
        if self.no_repeat_ngram is None or said.shape[1] < self.no_repeat_ngram:
            return logs
        rows, ids = _repeating(said, self.no_repeat_ngram)
        return logs.index_put((rows, ids), logs.new_tensor(-torch.inf))

    def ends(self, ids: Tensor) -> Tensor:
        """Where an id is the end."""
        return torch.zeros_like(ids, dtype=torch.bool) if self.end is None else ids == self.end

    def _check(self, vocabulary: int) -> None:
        named = [("end", self.end)] if self.end is not None else []
        for name, value in named + [("never", value) for value in self.never]:
            if not 0 <= value < vocabulary:
                raise ValueError(f"{name} ({value}) is not in a vocabulary of {vocabulary} words")


def limits(config: DecodingConfig, batch: Any, first: Tensor) -> Tensor:
    """How many words each row of the batch may say, (batch,).

    The source a row has decides, and never its neighbours.
    """
    most = torch.full_like(first, config.longest)
    if config.longest_factor is None:
        return most
    if not isinstance(batch, Pairs):
        raise ValueError(
            f"longest_factor ({config.longest_factor}) needs a source to multiply, "
            f"and {type(batch).__name__} has none: set longest"
        )
    lengths = batch.source_mask.sum(dim=1).tolist()
    words = [max(1, math.ceil(config.longest_factor * length)) for length in lengths]
    return most.minimum(torch.tensor(words, device=first.device))


def _repeating(said: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Rows, and the ids that would say `size` words in a row that the row has said before."""
    windows = said.unfold(1, size, 1)  # (row, place, word)
    begun = said[:, said.shape[1] - size + 1 :].unsqueeze(1)  # (row, 1, word): one is missing
    again = (windows[..., :-1] == begun).all(dim=-1)  # (row, place)
    rows, places = again.nonzero(as_tuple=True)
    return rows, windows[rows, places, -1]
