"""Numbers into tensors and out again, written as a lecture writes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor


def exact(numbers: Any) -> Tensor:
    """A tensor in double precision, so that a third is a third to sixteen digits."""
    return torch.tensor(numbers, dtype=torch.float64)


def plain(tensor: Tensor) -> Any:
    """Nested lists of floats, without the digits that only rounding has made."""
    return _rounded(tensor.detach().tolist(), 12 if tensor.dtype == torch.float64 else 7)


def _rounded(value: Any, digits: int) -> Any:
    if isinstance(value, list):
        return [_rounded(part, digits) for part in value]
    # + 0.0 turns -0 into 0
    return round(value, digits) + 0.0 if isinstance(value, float) else value


def fraction(number: float) -> str:
    """1/6 for 0.1666…"""
    return str(Fraction(number).limit_denominator(1000))


def fractions(row: Tensor) -> str:
    """[1/6 1/6 1/2 1/6]"""
    return _bracketed(fraction(number) for number in row.tolist())


def decimals(row: Tensor, digits: int = 4) -> str:
    """[0.1749 0.1749 0.4754 0.1749], and whole numbers without a tail of zeros."""
    return _bracketed(decimal(number, digits) for number in row.tolist())


def decimal(number: float, digits: int = 4) -> str:
    if float(number).is_integer():
        return f"{number + 0.0:.0f}"
    return f"{round(number, digits) + 0.0:.{digits}f}"


def _bracketed(words: Iterator[str]) -> str:
    return f"[{' '.join(words)}]"


def table(rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Lines with the columns under each other, words to the left and numbers to the right."""
    columns = [_aligned(column) for column in zip(*rows, strict=True)]
    return tuple("  ".join(cells).rstrip() for cells in zip(*columns, strict=True))


def _aligned(column: Sequence[str]) -> list[str]:
    width = max(map(len, column))
    words = any(cell[:1].isalpha() or cell[:1] == "[" for cell in column[1:])
    return [cell.ljust(width) if words else cell.rjust(width) for cell in column]
