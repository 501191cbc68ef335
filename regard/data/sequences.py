"""Sequences with known right answers, made rather than collected: nothing need be downloaded.

Every example comes with its links, the gold alignment: which source token each target token is
made from. What the index gives depends on the seed and the index alone, so any number of workers
see the same data in any order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from random import Random
from typing import Generic, TypeVar

SPLITS = ("train", "valid", "test")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TRIES = 100_000  # before a split is said to be empty; it holds one in twenty where it is not


@dataclass(frozen=True)
class Example:
    """A source, its right answer, and the pairs of (source index, target index) that belong."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: tuple[tuple[int, int], ...]

    @property
    def source_text(self) -> str:
        """The source as people write it."""
        return " ".join(self.source)

    @property
    def target_text(self) -> str:
        """The target as people write it."""
        return " ".join(self.target)


Thing = TypeVar("Thing")
Kind = TypeVar("Kind", bound=Example, covariant=True)


class Examples(Generic[Thing, Kind]):
    """An endless table of examples: `examples[7]` is the same whenever and wherever it is asked.

    `draw` proposes things that an example may be about, without end; the first that belongs to the
    split is taken, and `make` writes the example. Each thing belongs to one split for ever,
    whatever the seed, so nothing that is trained on is tested on.
    """

    def __init__(
        self,
        draw: Callable[[Random], Iterator[Thing]],
        make: Callable[[Thing, Random], Kind],
        seed: int,
        split: str,
    ):
        if split not in SPLITS:
            raise ValueError(f"split ({split!r}) must be one of {SPLITS}")
        self.draw, self.make, self.seed, self.split = draw, make, seed, split

    def __getitem__(self, index: int) -> Kind:
        if index < 0:
            raise IndexError(f"index ({index}) must be at least 0: there is no last example")
        chance = Random(f"{self.seed} {index}")
        for thing in itertools.islice(self.draw(chance), TRIES):
            if split_of(thing) == self.split:
                return self.make(thing, chance)
        raise ValueError(f"no example of this kind belongs to the split {self.split!r}")

    def __iter__(self) -> Iterator[Kind]:
        return (self[index] for index in itertools.count())

    def take(self, many: int, start: int = 0) -> list[Kind]:
        """Examples `start` to `start + many`."""
        return [self[index] for index in range(start, start + many)]


def split_of(thing: object) -> str:
    """Where a thing belongs: nine in ten to train, one in twenty each to valid and test."""
    digest = blake2b(str(thing).encode(), digest_size=8).digest()
    share = int.from_bytes(digest, "big") % 20
    return "valid" if share == 1 else "test" if share == 2 else "train"


def copy_examples(
    seed: int, split: str, *, longest: int = 20, symbols: str = LETTERS
) -> Examples[str, Example]:
    """Say it again: b d a → b d a."""

    def make(string: str, _chance: Random) -> Example:
        return Example(tuple(string), tuple(string), tuple((i, i) for i in range(len(string))))

    return Examples(_strings(longest, symbols), make, seed, split)


def reverse_examples(
    seed: int, split: str, *, longest: int = 20, symbols: str = LETTERS
) -> Examples[str, Example]:
    """Say it backwards: b d a → a d b."""

    def make(string: str, _chance: Random) -> Example:
        links = tuple((i, len(string) - 1 - i) for i in range(len(string)))
        return Example(tuple(string), tuple(reversed(string)), links)

    return Examples(_strings(longest, symbols), make, seed, split)


def any_b_examples(seed: int, split: str, *, longest: int = 20) -> Examples[str, Example]:
    """Has there been a B? A A B A → B, A A A → A. Half of the strings have one, or several.

    Every B is linked to the answer B. The answer A comes from no symbol more than from another.
    """
    without, mixed = _strings(longest, "A"), _strings(longest, "AB")

    def draw(chance: Random) -> Iterator[str]:
        for string, other in zip(without(chance), mixed(chance), strict=True):
            place = chance.randrange(len(other))
            yield string if chance.random() < 0.5 else f"{other[:place]}B{other[place + 1 :]}"

    def make(string: str, _chance: Random) -> Example:
        links = tuple((place, 0) for place, symbol in enumerate(string) if symbol == "B")
        return Example(tuple(string), ("B" if links else "A",), links)

    return Examples(draw, make, seed, split)


def _strings(longest: int, symbols: str) -> Callable[[Random], Iterator[str]]:
    """Strings of 1 to `longest` symbols, every length alike."""
    if longest < 1:
        raise ValueError(f"longest ({longest}) must be at least 1")
    if not symbols:
        raise ValueError("symbols must hold at least one symbol")

    def draw(chance: Random) -> Iterator[str]:
        while True:
            yield "".join(chance.choices(symbols, k=chance.randint(1, longest)))

    return draw
