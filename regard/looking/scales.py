"""Ranges of numbers: from where to where, and which values are named along the way."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

TICK_COUNT = 5  # named values along an axis, more or less
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Range:
    """From `low` to `high`, naming every `step`; on a logarithmic scale all three are exponents."""

    low: float
    high: float
    step: float
    log: bool = False
    tick_values: tuple[float, ...] = ()  # the values to be named instead, when they are few

    def fraction(self, value: float) -> float:
        """How far along a value lies, from 0 to 1."""
        at = log10(value) if self.log else value
        return (at - self.low) / (self.high - self.low)

    def ticks(self) -> list[tuple[float, str]]:
        """The named values and their names."""
        if self.tick_values:
            return [(value, f"{value:.10g}") for value in self.tick_values]
        first, last = ceil(self.low / self.step - 1e-9), floor(self.high / self.step + 1e-9)
        values = [self.step * at for at in range(first, last + 1)]
        if self.log:
            return [(10.0**at, format_power(round(at))) for at in values]
        return [(value, f"{value:.10g}") for value in values]


def format_power(exponent: int) -> str:
    """A power of ten in digits, 0.01, or raised where those are many, 10⁻⁷."""
    if -2 <= exponent <= 3:
        return f"{10**exponent:g}"
    return "10" + str(exponent).translate(SUPERSCRIPTS)


def fit_range(values: Sequence[float], log: bool = False, tight: bool = False) -> Range:
    """The range that holds all values; a tight one ends where they end."""
    if log:
        return decade_range(floor(log10(min(values))), ceil(log10(max(values))))
    low, high = float(min(values)), float(max(values))
    if low == high:
        low, high = low - 0.5, high + 0.5
    if tight:
        distinct = sorted(set(values))
        whole = all(value == int(value) for value in distinct)
        step = round_step((high - low) / TICK_COUNT)
        return Range(
            low,
            high,
            max(1.0, step) if whole else step,
            tick_values=tuple(distinct) if 1 < len(distinct) <= 2 * TICK_COUNT else (),
        )
    # From zero, when zero is not far: a curve should not look steeper than it is.
    low = 0.0 if 0 < low <= high / 2 else low
    step = round_step((high - low) / TICK_COUNT)
    return Range(step * floor(low / step + 1e-9), step * ceil(high / step - 1e-9), step)


def decade_range(low: int, high: int) -> Range:
    """A logarithmic range between two powers of ten."""
    if low == high:
        low, high = low - 1, high + 1
    return Range(low, high, ceil((high - low) / (TICK_COUNT + 1)), log=True)


def round_step(rough: float) -> float:
    """The next of 1, 2, 5, 10, 20 … and their tenths."""
    size = 10.0 ** floor(log10(rough))
    return next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough * 0.999)
