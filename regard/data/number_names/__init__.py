"""How languages name numbers: one file a language, each a list of morphemes and how to join them.

A morpheme says what it means, as (group, role): group 0 is what is below a thousand, 1 counts the
thousands, 2 the millions; the roles are those below. Two morphemes of two languages belong together
where their meanings meet: `veinti` with `twenty`, `mille` with both `one` and `thousand`.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, Protocol

HUNDREDS = "hundreds"  # the digit of the hundreds
HUNDRED = "hundred"  # the word hundred
TENS = "tens"
UNITS = "units"
SCALE = "scale"  # thousand or million
AFTER_HUNDRED = "after hundred"  # a connecting word there: one hundred *and* one
AFTER_SCALE = "after scale"  # one thousand *and* one
BETWEEN = "between"  # ein *und* zwanzig, vingt *et* un, treinta *y* uno


class Morpheme(NamedTuple):
    """The smallest piece of a number's name that means something."""

    text: str
    meanings: frozenset[tuple[int, str]]


class Language(Protocol):
    """What the file of a language has."""

    def name(self, number: int) -> list[Morpheme]:
        """The morphemes of a number from 0 to 999,999,999, in spoken order."""

    def joint(self, left: str, right: str) -> str:
        """What is written between two neighbouring morphemes: a blank, a hyphen or nothing."""


@cache
def says(text: str, group: int, *roles: str) -> Morpheme:
    return Morpheme(text, frozenset((group, role) for role in roles))


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def groups(number: int) -> list[tuple[int, int]]:
    """The groups of three digits that are not 0, as (group, value), from the left."""
    parts = ((2, number // 1_000_000), (1, number // 1000 % 1000), (0, number % 1000))
    return [(group, value) for group, value in parts if value]
