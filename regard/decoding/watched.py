"""Decode under watch: every answer with what the attentions returned on the way to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from regard.attention import Attended, watch
from regard.decoding.ancestry import Ancestry
from regard.decoding.answers import decode
from regard.decoding.config import DecodingConfig
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.packed import pack


@dataclass(frozen=True)
class WatchedHypothesis:
    """An answer, and by path the calls it came through, each with its row of the batch alone."""

    hypothesis: Hypothesis
    seen: dict[str, list[Attended]]


def decode_watched(
    model: Any, batch: Any, first: Tensor, config: DecodingConfig, **options: Any
) -> list[list[WatchedHypothesis]]:
    """`decode` with these settings; the weights are those that were used while decoding.

    ((best, *_),) = decode_watched(model, batch, first, config, end=end)
    best.seen["decoder.attention"][3].weights  # of its fourth word, (1, …, 1, key)

    What an attention returned before the first step, over a source or a prompt, comes first.
    """
    ancestry = Ancestry()
    with torch.no_grad():
        model = pack(model, config.weights)  # what decodes is what is watched
    with watch(model) as seen:
        marked = MarkedModel(model, seen)
        answers = decode(marked, batch, first, config, ancestry=ancestry, **options)
    return [
        [WatchedHypothesis(each, marked.trace(ancestry.rows(each))) for each in hypotheses]
        for hypotheses in answers
    ]


@dataclass
class MarkedModel:
    """A model that notes after its start and after each step how many calls there were."""

    model: Any
    seen: Mapping[str, Sequence[Attended]]
    marks: list[dict[str, int]] = field(default_factory=list)

    def start(self, batch: Any) -> Any:
        state = self.model.start(batch)
        self._mark()
        return state

    def step(self, ids: Tensor, state: Any) -> tuple[Tensor, Any]:
        result: tuple[Tensor, Any] = self.model.step(ids, state)
        self._mark()
        return result

    def trace(self, rows: Sequence[int]) -> dict[str, list[Attended]]:
        """The calls of an answer, by its row of the batch and then its row in each of its steps."""
        traced: dict[str, list[Attended]] = {}
        for path, calls in self.seen.items():
            ends = [mark.get(path, 0) for mark in self.marks[: len(rows)]]
            begins = [0, *ends[:-1]]
            traced[path] = [
                call.pick(row)
                for row, begin, end in zip(rows, begins, ends, strict=True)
                for call in calls[begin:end]
            ]
        return traced

    def _mark(self) -> None:
        self.marks.append({path: len(calls) for path, calls in self.seen.items()})
