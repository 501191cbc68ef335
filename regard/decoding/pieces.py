"""Answers longer than a model has positions, said piece by piece.

Whenever the positions run out, the model goes on from the last half of them, as if that were its
prompt. Each piece draws random numbers of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from regard.decoding.answers import decode, stream
from regard.decoding.config import DecodingConfig
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.prompts import prompted


@dataclass(frozen=True)
class Continuing:
    """A language model asked to go on from prompts, however far."""

    model: Any
    config: DecodingConfig
    first: int  # what stands before the first word of an empty prompt
    end: int | None = None
    never: Sequence[int] = ()

    @property
    def room(self) -> int | None:
        """How many positions the model knows; None for any number."""
        return getattr(getattr(self.model, "config", None), "longest", None)

    def answers(
        self, prompts: list[list[int]], numbers: Sequence[int] | None = None
    ) -> list[list[Hypothesis]]:
        """The hypotheses for each prompt, best first; what is drawn follows from its number."""
        room = self.room
        numbers = range(len(prompts)) if numbers is None else numbers
        longest = max(map(len, prompts), default=0) + self.config.longest
        if room is None or longest <= room:
            batch, first = prompted(prompts, self.first)
            return decode(
                self.model,
                batch,
                first,
                self.config,
                end=self.end,
                never=self.never,
                numbers=numbers,
            )
        if self.config.method == "beam":
            raise ValueError(
                f"{longest} tokens go beyond the {room} positions of the model; greedy and sample "
                "go on from the last ones, a beam cannot"
            )
        rows = zip(prompts, numbers, strict=True)
        return [self._longs(prompt, number) for prompt, number in rows]

    def words(self, prompt: list[int]) -> Iterator[int]:
        """The ids of one answer as they come."""
        said: list[int] = []
        while len(said) < self.config.longest and (self.end is None or self.end not in said[-1:]):
            part, piece = self._piece([*prompt, *said], len(said))
            batch, first = prompted([part], self.first)
            for word in stream(self.model, batch, first, piece, end=self.end, never=self.never):
                said.append(word)
                yield word

    def _longs(self, prompt: list[int], number: int) -> list[Hypothesis]:
        """The answers to one prompt, each with draws of its own, best first."""
        copies = self.config.n_best
        found = [self._long(prompt, number * copies + copy) for copy in range(copies)]
        return sorted(found, key=lambda one: -one.score)

    def _long(self, prompt: list[int], number: int) -> Hypothesis:
        said: list[int] = []
        total, ended = 0.0, False
        while len(said) < self.config.longest and not ended:
            part, piece = self._piece([*prompt, *said], len(said))
            batch, first = prompted([part], self.first)
            ((found,),) = decode(
                self.model, batch, first, piece, end=self.end, never=self.never, numbers=[number]
            )
            said += found.ids
            total, ended = total + found.log_probability, found.ended
        return Hypothesis(tuple(said), total / self.config.penalty(len(said)), total, ended)

    def _piece(self, words: list[int], said: int) -> tuple[list[int], DecodingConfig]:
        """What the model goes on from, and how far."""
        config, room = self.config, self.room
        left = config.longest - said
        if room is None:
            return words, config
        fits = len(words) + left <= room or len(words) <= room // 2
        part = words if fits else words[-(room // 2) :]
        most = min(left, max(room - len(part), 1))
        shortest = min(max(config.shortest - said, 0), most)
        seed = config.seed + said
        return part, replace(config, longest=most, shortest=shortest, seed=seed, n_best=1)
