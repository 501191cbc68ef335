"""Constraints on decoding: barred words, repeated n-grams, shortest and longest answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.decoding.config import DecodingConfig


@dataclass(frozen=True)
class Rules:
    """Bars words by setting their log P to -inf; that of the others stays what the model says."""

    end: int | None
    never: tuple[int, ...]
    shortest: int
    no_repeat_ngram: int | None

    @classmethod
    def from_config(cls, config: DecodingConfig, end: int | None, never: Sequence[int]) -> Rules:
        return cls(end, tuple(never), config.shortest, config.no_repeat_ngram)

    def apply(self, log_probs: Tensor, prefixes: Tensor) -> Tensor:
        """log P (row, vocabulary) of the next words, -inf for those barred after `prefixes`.

        `prefixes` (row, step) are the words of each row so far.
        """
        return self.apply_(log_probs.clone(), prefixes)

    def apply_(self, log_probs: Tensor, prefixes: Tensor) -> Tensor:
        """The same written in place, for a decoder whose numbers are fresh from a softmax: to copy
        them takes a third of its time."""
        self._check(log_probs.shape[1])
        barred = list(self.never)
        if self.end is not None and prefixes.shape[1] < self.shortest:
            barred.append(self.end)
        for word in barred:
            log_probs[:, word] = -torch.inf
        if self.no_repeat_ngram is None or prefixes.shape[1] < self.no_repeat_ngram:
            return log_probs
        rows, ids = _find_repeats(prefixes, self.no_repeat_ngram)
        return log_probs.index_put_((rows, ids), log_probs.new_tensor(-torch.inf))

    def is_end(self, ids: Tensor) -> Tensor:
        """Where an id is the end."""
        return torch.zeros_like(ids, dtype=torch.bool) if self.end is None else ids == self.end

    def _check(self, vocabulary: int) -> None:
        checked = [("end", self.end)] if self.end is not None else []
        for name, value in checked + [("never", value) for value in self.never]:
            if not 0 <= value < vocabulary:
                raise ValueError(f"{name} ({value}) is not in a vocabulary of {vocabulary} words")


def max_lengths(config: DecodingConfig, batch: Any, first: Tensor) -> Tensor:
    """The most words that each row of the batch may have, (batch,).

    The source a row has decides, and never its neighbours.
    """
    limits = torch.full_like(first, config.longest)
    if config.longest_factor is None:
        return limits
    lengths = getattr(batch, "source_lengths", None)
    if lengths is None:
        raise ValueError(
            f"longest_factor ({config.longest_factor}) needs a source to multiply, "
            f"and {type(batch).__name__} has none: set longest"
        )
    words = [max(1, math.ceil(config.longest_factor * length)) for length in lengths.tolist()]
    return limits.minimum(torch.tensor(words, device=first.device))


def _find_repeats(prefixes: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Rows, and the ids each of which would repeat an n-gram of `size` words of its row."""
    ngrams = prefixes.unfold(1, size, 1)  # (row, position, word)
    context = prefixes[:, prefixes.shape[1] - size + 1 :].unsqueeze(1)  # (row, 1, size − 1)
    matches = (ngrams[..., :-1] == context).all(dim=-1)  # (row, position)
    rows, positions = matches.nonzero(as_tuple=True)
    return rows, ngrams[rows, positions, -1]
