"""Ranges of numbers: from where to where, and which values are named along the way."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

FEW = 5  # values named along an axis, more or less
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Range:
    """From `low` to `high`, naming every `step`; on a logarithmic scale all three are exponents."""

    low: float
    high: float
    step: float
    log: bool = False
    stops: tuple[float, ...] = ()  # the values to be named instead, when they are few

    def share(self, value: float) -> float:
        """How far along a value lies, from 0 to 1."""
        at = log10(value) if self.log else value
        return (at - self.low) / (self.high - self.low)

    def ticks(self) -> list[tuple[float, str]]:
        """The named values and their names."""
        if self.stops:
            return [(value, f"{value:.10g}") for value in self.stops]
        first, last = ceil(self.low / self.step - 1e-9), floor(self.high / self.step + 1e-9)
        values = [self.step * at for at in range(first, last + 1)]
        if self.log:
            return [(10.0**at, power(round(at))) for at in values]
        return [(value, f"{value:.10g}") for value in values]


def power(exponent: int) -> str:
    return f"{10**exponent:g}" if -2 <= exponent <= 3 else "10" + str(exponent).translate(RAISED)


def range_over(values: Sequence[float], log: bool = False, tight: bool = False) -> Range:
    """A range that holds all values; a tight one ends where they end."""
    if log:
        return decades(floor(log10(min(values))), ceil(log10(max(values))))
    low, high = float(min(values)), float(max(values))
    if low == high:
        low, high = low - 0.5, high + 0.5
    if tight:
        stops = sorted(set(values))
        whole = all(value == int(value) for value in stops)
        step = round_step((high - low) / FEW)
        return Range(
            low,
            high,
            max(1.0, step) if whole else step,
            stops=tuple(stops) if 1 < len(stops) <= 2 * FEW else (),
        )
    # From zero, when zero is not far: a curve should not look steeper than it is.
    low = 0.0 if 0 < low <= high / 2 else low
    step = round_step((high - low) / FEW)
    return Range(step * floor(low / step + 1e-9), step * ceil(high / step - 1e-9), step)


def decades(low: int, high: int) -> Range:
    if low == high:
        low, high = low - 1, high + 1
    return Range(low, high, ceil((high - low) / (FEW + 1)), log=True)


def round_step(rough: float) -> float:
    """The next of 1, 2, 5, 10, 20 … and their tenths."""
    size = 10.0 ** floor(log10(rough))
    return next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough * 0.999)
