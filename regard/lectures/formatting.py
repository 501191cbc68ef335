"""Tensors from numbers, and numbers written the way a lecture writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor


def double(numbers: Any) -> Tensor:
    """A float64 tensor, so that a third is a third to sixteen digits."""
    return torch.tensor(numbers, dtype=torch.float64)


def to_list(tensor: Tensor) -> Any:
    """`tensor.tolist()`, rounded to the digits its precision holds."""
    return _round(tensor.detach().tolist(), 12 if tensor.dtype == torch.float64 else 7)


def _round(value: Any, digits: int) -> Any:
    if isinstance(value, list):
        return [_round(part, digits) for part in value]
    # + 0.0 turns -0 into 0
    return round(value, digits) + 0.0 if isinstance(value, float) else value


def max_difference(one: Tensor, other: Tensor) -> float:
    """The largest absolute difference between two tensors of one shape."""
    return float((one - other).abs().max())


def fraction(number: float) -> str:
    """1/6 for 0.1666…"""
    return str(Fraction(number).limit_denominator(1000))


def fractions(row: Tensor) -> str:
    """[1/6 1/6 1/2 1/6]"""
    return bracket(fraction(number) for number in row.tolist())


def decimals(row: Tensor, digits: int = 4) -> str:
    """[0.1749 0.1749 0.4754 0.1749], and whole numbers without a tail of zeros."""
    return bracket(decimal(number, digits) for number in row.tolist())


def decimal(number: float, digits: int = 4) -> str:
    """0.1749, and 3 for 3.0."""
    if float(number).is_integer():
        return f"{number + 0.0:.0f}"
    return f"{round(number, digits) + 0.0:.{digits}f}"


def bracket(words: Iterable[str]) -> str:
    """[these words]"""
    return f"[{' '.join(words)}]"


def table(rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Lines with the columns under each other, words to the left and numbers to the right."""
    columns = [_align(column) for column in zip(*rows, strict=True)]
    return tuple("  ".join(cells).rstrip() for cells in zip(*columns, strict=True))


def _align(column: Sequence[str]) -> list[str]:
    width = max(map(len, column))
    words = any(cell[:1].isalpha() or cell[:1] == "[" for cell in column[1:])
    return [cell.ljust(width) if words else cell.rjust(width) for cell in column]
