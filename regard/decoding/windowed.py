"""Generate answers longer than a model has positions, window by window.

Whenever the positions run out, the model goes on from the last half of them, as if that were its
prompt. Each window draws random numbers of its own. A prompt that is too long already is refused,
unless `decoding.sliding` asks for its last words to stand for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from regard.decoding.answers import decode, stream
from regard.decoding.config import DecodingConfig
from regard.decoding.hypothesis import Hypothesis, sort_by_score
from regard.decoding.prompts import prepare_prompts
from regard.decoding.watched import WatchedHypothesis, decode_watched


@dataclass(frozen=True)
class WatchedWindow(WatchedHypothesis):
    """An answer, or a piece of one, with what stood before it in the same window."""

    prompt: list[int]


@dataclass(frozen=True)
class WindowedGenerator:
    """Continues prompts with a language model, beyond its positions if need be."""

    model: Any
    config: DecodingConfig
    first: int  # what stands before the first word of an empty prompt
    end: int | None = None
    never: Sequence[int] = ()

    @property
    def max_positions(self) -> int | None:
        """How many positions the model knows; None for any number."""
        return getattr(getattr(self.model, "config", None), "longest", None)

    def generate(
        self, prompts: list[list[int]], numbers: Sequence[int] | None = None
    ) -> list[list[Hypothesis]]:
        """The hypotheses for each prompt, best first; what is drawn follows from its number."""
        size = self.max_positions
        self._check_prompts(prompts)
        numbers = range(len(prompts)) if numbers is None else numbers
        longest = max(map(len, prompts), default=0) + self.config.longest
        if size is None or longest <= size:
            batch, first = prepare_prompts(prompts, self.first)
            return decode(self.model, batch, first, self.config, **self._options(numbers))
        if self.config.method == "beam":
            raise ValueError(
                f"{longest} tokens go beyond the {size} positions of the model; greedy and sample "
                "go on from the last ones, a beam cannot"
            )
        rows = zip(prompts, numbers, strict=True)
        return [self._generate_long(prompt, number) for prompt, number in rows]

    def stream(self, prompt: list[int]) -> Iterator[int]:
        """The ids of one answer as they come."""
        self._check_prompts([prompt])
        ids: list[int] = []
        while len(ids) < self.config.longest and (self.end is None or self.end not in ids[-1:]):
            window, config = self._next_window([*prompt, *ids], len(ids))
            batch, first = prepare_prompts([window], self.first)
            for word in stream(self.model, batch, first, config, end=self.end, never=self.never):
                ids.append(word)
                yield word

    def _generate_long(self, prompt: list[int], number: int) -> list[Hypothesis]:
        """The answers to one prompt, each with draws of its own, best first."""
        copies = self.config.n_best
        numbers = range(number * copies, (number + 1) * copies)
        return sort_by_score([self._generate_one(prompt, one) for one in numbers])

    def _generate_one(self, prompt: list[int], number: int) -> Hypothesis:
        ids: list[int] = []
        total, ended = 0.0, False
        while len(ids) < self.config.longest and not ended:
            window, config = self._next_window([*prompt, *ids], len(ids))
            batch, first = prepare_prompts([window], self.first)
            ((part,),) = decode(self.model, batch, first, config, **self._options([number]))
            ids += part.ids
            total, ended = total + part.log_probability, part.ended
        return Hypothesis(tuple(ids), total / self.config.penalty(len(ids)), total, ended)

    def generate_watched(self, prompt: list[int], number: int = 0) -> list[WatchedWindow]:
        """The best answer to a prompt as `generate` gives it, with all that was looked at.

        One window, unless the answer goes beyond the positions of the model.
        """
        size = self.max_positions
        self._check_prompts([prompt])
        if size is None or len(prompt) + self.config.longest <= size:
            return [self._watch_window(prompt, self.config, number)]
        if (copies := self.config.n_best) > 1:
            numbers = range(number * copies, (number + 1) * copies)
            number = max(numbers, key=lambda one: self._generate_one(prompt, one).score)
        windows: list[WatchedWindow] = []
        ids: list[int] = []
        while len(ids) < self.config.longest and not (windows and windows[-1].hypothesis.ended):
            window, config = self._next_window([*prompt, *ids], len(ids))
            windows.append(self._watch_window(window, config, number))
            ids += windows[-1].hypothesis.ids
        return windows

    def _watch_window(
        self, window: list[int], config: DecodingConfig, number: int
    ) -> WatchedWindow:
        batch, first = prepare_prompts([window], self.first)
        options = self._options([number])
        ((best, *_),) = decode_watched(self.model, batch, first, config, **options)
        return WatchedWindow(best.hypothesis, best.seen, window or [self.first])

    def _check_prompts(self, prompts: list[list[int]]) -> None:
        """Refuse a prompt that the model could not read whole."""
        longest, size = max(map(len, prompts), default=0), self.max_positions
        if size is not None and longest > size and not self.config.sliding:
            raise ValueError(
                f"the prompt has {longest} tokens, and the model has {size} positions; with "
                "sliding (decoding.sliding = true, --sliding) the last ones stand for it"
            )

    def _options(self, numbers: Sequence[int]) -> dict[str, Any]:
        return {"end": self.end, "never": self.never, "numbers": numbers}

    def _next_window(self, text: list[int], generated: int) -> tuple[list[int], DecodingConfig]:
        """What the model goes on from, and how far; the last `generated` ids of `text` are new."""
        config, size = self.config, self.max_positions
        left = config.longest - generated
        if size is None:
            return text, config
        window = text if len(text) <= size else text[-max(size // 2, 1) :]
        longest = min(left, max(size - len(window), 1))
        shortest = min(max(config.shortest - generated, 0), longest)
        seed = config.seed + generated
        return window, replace(config, longest=longest, shortest=shortest, seed=seed, n_best=1)
