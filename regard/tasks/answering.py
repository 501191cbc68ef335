"""Many texts for a verb: those of like length together, answers in the order of the texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from regard.data.buckets import LengthBuckets
from regard.tasks.answers import Answer
from regard.tasks.task import Verb

A = TypeVar("A")
TOKENS = 4096
"""Tokens answered at once where there are many texts: more gain nothing on a small machine."""


class BoundVerb:
    """A verb of a run with its settings, to be asked for one group of texts after the other.

    Where each text goes on from the one before (`Ordered`), that holds across groups too.
    """

    def __init__(self, action: Verb, verb: str, settings: Mapping[str, Any]):
        self.action, self.verb, self.settings = action, verb, settings

    def answers(
        self, texts: Sequence[str], numbers: Sequence[int] | None = None
    ) -> Iterator[Answer]:
        """Answer texts in their order, each as soon as it and those before it are ready."""
        encoded = [self.action.encode(text) for text in texts]

        def answer(places: Sequence[int]) -> list[Answer]:
            own = [place if numbers is None else numbers[place] for place in places]
            found = self.action.answer([encoded[place] for place in places], own)
            return [
                Answer(texts[place], tuple(each), self.verb, self.settings, number)
                for place, each, number in zip(places, found, own, strict=True)
            ]

        return in_order(self._plan([len(each) + 1 for each in encoded]), answer)

    def _plan(self, lengths: Sequence[int]) -> Iterable[Sequence[int]]:
        """Which texts are answered together."""
        if not lengths or getattr(self.action, "in_order", False):
            return [[place] for place in range(len(lengths))]
        return LengthBuckets(lengths, getattr(self.action, "tokens", TOKENS), None).plan(0)


def in_order(
    plan: Iterable[Sequence[int]], answer: Callable[[Sequence[int]], list[A]]
) -> Iterator[A]:
    """Answers in the order of their places, though the plan has them in another."""
    waiting: dict[int, A] = {}
    place = 0
    for places in plan:
        waiting.update(zip(places, answer(places), strict=True))
        while place in waiting:
            yield waiting.pop(place)
            place += 1
