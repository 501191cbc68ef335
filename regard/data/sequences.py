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
MAX_TRIES = 100_000  # before a split is said to be empty; it holds one in twenty where it is not


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


Item = TypeVar("Item")
ExampleT = TypeVar("ExampleT", bound=Example, covariant=True)


class Examples(Generic[Item, ExampleT]):
    """An endless sequence of examples: `examples[7]` depends on the seed and 7 alone.

    `draw` proposes items to make examples of, without end; the first that belongs to the split is
    taken, and `make` makes the example. Each item belongs to one split for ever, whatever the seed,
    so nothing that is trained on is tested on.
    """

    def __init__(
        self,
        draw: Callable[[Random], Iterator[Item]],
        make: Callable[[Item, Random], ExampleT],
        seed: int,
        split: str,
    ):
        if split not in SPLITS:
            raise ValueError(f"split ({split!r}) must be one of {SPLITS}")
        self.draw, self.make, self.seed, self.split = draw, make, seed, split

    def __getitem__(self, index: int) -> ExampleT:
        if index < 0:
            raise IndexError(f"index ({index}) must be at least 0: there is no last example")
        rng = Random(f"{self.seed} {index}")
        for item in itertools.islice(self.draw(rng), MAX_TRIES):
            if split_of(item) == self.split:
                return self.make(item, rng)
        raise ValueError(f"no example of this kind belongs to the split {self.split!r}")

    def __iter__(self) -> Iterator[ExampleT]:
        return (self[index] for index in itertools.count())

    def take(self, count: int, start: int = 0) -> list[ExampleT]:
        """A list of `count` examples, from index `start` on."""
        return [self[index] for index in range(start, start + count)]


def split_of(item: object) -> str:
    """The split of an item, by its hash: nine in ten train, one in twenty each valid and test."""
    digest = blake2b(str(item).encode(), digest_size=8).digest()
    share = int.from_bytes(digest, "big") % 20
    return "valid" if share == 1 else "test" if share == 2 else "train"


def copy_examples(
    seed: int, split: str, *, longest: int = 20, symbols: str = LETTERS
) -> Examples[str, Example]:
    """Strings and their copies: b d a → b d a."""

    def make(string: str, _rng: Random) -> Example:
        return Example(tuple(string), tuple(string), tuple((i, i) for i in range(len(string))))

    return Examples(_strings(longest, symbols), make, seed, split)


def reverse_examples(
    seed: int, split: str, *, longest: int = 20, symbols: str = LETTERS
) -> Examples[str, Example]:
    """Strings and their reversals: b d a → a d b."""

    def make(string: str, _rng: Random) -> Example:
        links = tuple((i, len(string) - 1 - i) for i in range(len(string)))
        return Example(tuple(string), tuple(reversed(string)), links)

    return Examples(_strings(longest, symbols), make, seed, split)


def any_b_examples(seed: int, split: str, *, longest: int = 20) -> Examples[str, Example]:
    """Strings and whether they hold a B: A A B A → B, A A A → A. Half of them do.

    Every B is linked to the answer B. The answer A comes from no symbol more than from another.
    """
    without, mixed = _strings(longest, "A"), _strings(longest, "AB")

    def draw(rng: Random) -> Iterator[str]:
        for string, other in zip(without(rng), mixed(rng), strict=True):
            place = rng.randrange(len(other))
            yield string if rng.random() < 0.5 else f"{other[:place]}B{other[place + 1 :]}"

    def make(string: str, _rng: Random) -> Example:
        links = tuple((place, 0) for place, symbol in enumerate(string) if symbol == "B")
        return Example(tuple(string), ("B" if links else "A",), links)

    return Examples(draw, make, seed, split)


def _strings(longest: int, symbols: str) -> Callable[[Random], Iterator[str]]:
    """Random strings of 1 to `longest` symbols, every length equally likely."""
    if longest < 1:
        raise ValueError(f"longest ({longest}) must be at least 1")
    if not symbols:
        raise ValueError("symbols must hold at least one symbol")

    def draw(rng: Random) -> Iterator[str]:
        while True:
            yield "".join(rng.choices(symbols, k=rng.randint(1, longest)))

    return draw
