"""Batches in an order that is a pure function of (seed, epoch, index).

A feed can be asked for any batch of any epoch, so the whole state of a data pipeline is two
numbers, and a run that is resumed, or read by more workers, sees what it would have seen anyway.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

import torch

from regard.data.batches import Batch

B = TypeVar("B", bound=Batch, covariant=True)


class Feed(Protocol[B]):
    """Where batches come from."""

    continues: bool
    """Whether row r of a batch goes on where row r of the batch before ended."""

    def batches(self, epoch: int) -> int:
        """How many batches this epoch has."""

    def batch(self, epoch: int, index: int) -> B:
        """One of them, always the same."""

    @property
    def summary(self) -> str:
        """How much there is, for people: "20,000 pairs"."""


def random_stream(seed: int, *places: int) -> torch.Generator:
    """A generator of its own for each place, whatever was drawn elsewhere."""
    mixed = 0
    for place in (seed, *places):
        # The mixing step of splitmix64: neighbouring places get streams that have nothing in
        # common.
        mixed = (mixed + place + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        mixed ^= mixed >> 31
    return torch.Generator().manual_seed(mixed & 0x7FFFFFFFFFFFFFFF)
