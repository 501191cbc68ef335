"""How languages name numbers: one file a language, each a list of morphemes and how to join them.

A morpheme says what it means, as (group, role): group 0 is what is below a thousand, 1 counts the
thousands, 2 the millions. Two morphemes of two languages belong together where their meanings meet:
`veinti` with `twenty`, `mille` with both `one` and `thousand`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from functools import cache
from typing import NamedTuple, Protocol


class Role(Enum):
    """What a morpheme does in its group of three digits."""

    HUNDREDS = auto()  # the digit of the hundreds
    HUNDRED = auto()  # the word hundred
    TENS = auto()
    UNITS = auto()
    SCALE = auto()  # thousand or million
    AFTER_HUNDRED = auto()  # a connecting word there: one hundred *and* one
    AFTER_SCALE = auto()  # one thousand *and* one
    BETWEEN = auto()  # ein *und* zwanzig, vingt *et* un, treinta *y* uno


class Morpheme(NamedTuple):
    """The smallest piece of a number's name that means something."""

    text: str
    meanings: frozenset[tuple[int, Role]]


class Language(Protocol):
    """What the file of a language has."""

    def spell(self, number: int) -> list[Morpheme]:
        """The morphemes of a number from 0 to 999,999,999, in spoken order."""

    def separator(self, left: str, right: str) -> str:
        """What is written between two neighbouring morphemes: a blank, a hyphen or nothing."""


@cache
def morpheme(text: str, group: int, *roles: Role) -> Morpheme:
    """A morpheme with these roles in its group."""
    return Morpheme(text, frozenset((group, role) for role in roles))


def words(text: str) -> tuple[str, ...]:
    """The words of a text, as a table of names is best typed."""
    return tuple(text.split())


def spell_groups(
    number: int,
    zero: str,
    spell_group: Callable[[int, int], list[Morpheme]],
    connect: Callable[[int, int, int], list[Morpheme]] = lambda value, group, above: [],
) -> list[Morpheme]:
    """Spell each group of three digits that is not 0, from the left, or `zero` if there is none.

    `spell_group(value, group)` names a group with its scale; `connect(value, group, above)` names
    what stands between it and the group before it.
    """
    parts = ((2, number // 1_000_000), (1, number // 1000 % 1000), (0, number % 1000))
    groups = [(group, value) for group, value in parts if value]
    if not groups:
        return [morpheme(zero, 0, Role.UNITS)]
    spelled: list[Morpheme] = []
    above = None  # the group before
    for group, value in groups:
        if above is not None:
            spelled += connect(value, group, above)
        spelled += spell_group(value, group)
        above = group
    return spelled


def spell_small(text: str, value: int, group: int) -> list[Morpheme]:
    """One word for 1 to 19, the tens and the units that it has; nothing for 0."""
    digits = {Role.TENS: value // 10, Role.UNITS: value % 10}
    roles = [role for role, digit in digits.items() if digit]
    return [morpheme(text, group, *roles)] if roles else []
