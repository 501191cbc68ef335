"""Validation data out of training data, when there is no file of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def hold_out(examples: Sequence[T], share: float) -> tuple[Sequence[T], Sequence[T]]:
    """All but the last `share` of the examples, and those."""
    cut = int(len(examples) * (1 - share))
    return examples[:cut], examples[cut:]
