"""Sequences of random bits, and what a machine with a memory should make of them.

copy            read a sequence, then say it                       Graves et al. (2014), section 4.1
repeat-copy     say it as often as asked, then say that it ends    section 4.2
recall          read items, be asked for one, say the next         section 4.3

Every batch holds sequences of one length, so that no step is padding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.data.batches import Bits
from regard.data.feeds import random_stream

MEAN_REPEATS, SPREAD = 5.5, 2.87  # of one to ten, which the number of copies is told relative to


@dataclass(frozen=True)
class Pattern:
    """How many channels go in and come out beside `width` bits, and how an episode is made."""

    extra_inputs: int
    extra_outputs: int
    make: Callable[[torch.Generator, int, int, int, int], Bits]
    """From a generator, rows, width, length, repeats (of repeat-copy)."""


class BitFeed:
    """Batches of episodes, each of a length from `shortest` to `longest`."""

    continues = False

    def __init__(
        self,
        pattern: Pattern,
        width: int,
        lengths: tuple[int, int],
        repeats: tuple[int, int],
        rows: int,
        batches: int,
        seed: int,
    ):
        self.pattern, self.width, self.lengths, self.repeats = pattern, width, lengths, repeats
        self.rows, self.count, self.seed = rows, batches, seed

    @property
    def summary(self) -> str:
        first, last = self.lengths
        return f"bit sequences of {first} to {last}"

    def batches(self, epoch: int) -> int:
        return self.count

    def batch(self, epoch: int, index: int) -> Bits:
        generator = random_stream(self.seed, epoch, index)
        length, repeats = (
            int(torch.randint(low, high + 1, (), generator=generator))
            for low, high in (self.lengths, self.repeats)
        )
        return self.pattern.make(generator, self.rows, self.width, length, repeats)


def make_copy(generator: torch.Generator, rows: int, width: int, length: int, _: int) -> Bits:
    """`length` vectors, a mark, then silence while they are to be said."""
    return copy_batch(_random_bits(generator, rows, length, width), 1, repeats_told=False)


def make_repeat_copy(
    generator: torch.Generator, rows: int, width: int, length: int, repeats: int
) -> Bits:
    """`length` vectors, how often to say them, silence; after the last copy a mark is said."""
    return copy_batch(_random_bits(generator, rows, length, width), repeats, repeats_told=True)


def copy_batch(sequence: Tensor, repeats: int, repeats_told: bool) -> Bits:
    """Episodes that ask for copies of given sequences (batch, length, width)."""
    rows, length, width = sequence.shape
    answer = repeats * length + repeats_told
    steps = length + 1 + answer
    inputs = sequence.new_zeros(rows, steps, width + 1 + repeats_told)
    targets = sequence.new_zeros(rows, steps, width + repeats_told)
    inputs[:, :length, :width] = sequence
    inputs[:, length, width] = 1.0
    if repeats_told:
        inputs[:, length, width + 1] = (repeats - MEAN_REPEATS) / SPREAD
        targets[:, -1, width] = 1.0
    targets[:, length + 1 : length + 1 + repeats * length, :width] = sequence.repeat(1, repeats, 1)
    return _answer_last(inputs, targets, answer)


def make_recall(generator: torch.Generator, rows: int, width: int, length: int, _: int) -> Bits:
    """`length` items of three vectors each behind a mark; one of them again; the next is wanted."""
    items = _random_bits(generator, rows, length * 3, width).view(rows, length, 3, width)
    asked = torch.randint(max(length - 1, 1), (rows,), generator=generator)
    steps = length * 4 + 5 + 3
    inputs = items.new_zeros(rows, steps, width + 2)
    targets = items.new_zeros(rows, steps, width)
    for place in range(length):
        inputs[:, place * 4, width] = 1.0
        inputs[:, place * 4 + 1 : place * 4 + 4, :width] = items[:, place]
    every = torch.arange(rows)
    first = length * 4
    inputs[:, [first, first + 4], width + 1] = 1.0  # the question stands between two other marks
    inputs[:, first + 1 : first + 4, :width] = items[every, asked]
    targets[:, -3:] = items[every, (asked + 1) % length]
    return _answer_last(inputs, targets, 3)


def _answer_last(inputs: Tensor, targets: Tensor, answer: int) -> Bits:
    """Episodes of which the last `answer` steps count."""
    real = torch.ones(inputs.shape[:2], dtype=torch.bool)
    asked = torch.arange(inputs.shape[1]) >= inputs.shape[1] - answer
    return Bits(inputs, targets, real, asked.expand_as(real))


def _random_bits(generator: torch.Generator, rows: int, length: int, width: int) -> Tensor:
    return torch.randint(2, (rows, length, width), generator=generator).float()


PATTERNS = {
    "copy": Pattern(1, 0, make_copy),
    "repeat-copy": Pattern(2, 1, make_repeat_copy),
    "recall": Pattern(2, 0, make_recall),
}
