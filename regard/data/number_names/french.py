"""cent vingt et un millions trois cent mille quatre, hyphens below a hundred but for `et`

Seventy is sixty and ten, ninety is four twenties and ten: soixante·et·onze, quatre·vingt·dix·neuf.
Cents and vingts lose their s before another number, and mille is one, but millions are things.
"""

from __future__ import annotations

from regard.data.number_names import Morpheme, Role, morpheme, spell_groups, spell_small, words

SMALL = words(
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize"
)
TENFOLD = ("", "", "vingt", "trente", "quarante", "cinquante", "soixante")


def spell(number: int) -> list[Morpheme]:
    return spell_groups(number, "zéro", _group)


def separator(left: str, right: str) -> str:
    if left == "quatre" and right.startswith("vingt"):
        return "-"
    return "-" if left in (*TENFOLD, "dix") and right in SMALL else " "


def _group(value: int, group: int) -> list[Morpheme]:
    if group == 1 and value == 1:
        return [morpheme("mille", 1, Role.UNITS, Role.SCALE)]
    scale = ("", "mille", "millions" if value > 1 else "million")[group]
    return _below_thousand(value, group) + ([morpheme(scale, group, Role.SCALE)] if group else [])


def _below_thousand(value: int, group: int) -> list[Morpheme]:
    hundreds, rest = divmod(value, 100)
    spelled = _below_hundred(rest, group)
    if hundreds > 1:
        ending = "s" if rest == 0 and group != 1 else ""
        digit = morpheme(SMALL[hundreds], group, Role.HUNDREDS)
        return [digit, morpheme(f"cent{ending}", group, Role.HUNDRED), *spelled]
    return [morpheme("cent", group, Role.HUNDREDS, Role.HUNDRED), *spelled] if hundreds else spelled


def _below_hundred(value: int, group: int) -> list[Morpheme]:
    if value < 20:
        return _below_twenty(value, group)
    if value >= 80:
        ending = "s" if value == 80 and group != 1 else ""
        twenties = [
            morpheme("quatre", group, Role.TENS),
            morpheme(f"vingt{ending}", group, Role.TENS),
        ]
        return twenties + _below_twenty(value - 80, group)
    tens = min(value // 10, 6)
    rest = value - 10 * tens
    spelled = [morpheme(TENFOLD[tens], group, Role.TENS)]
    if rest in (1, 11):
        spelled.append(morpheme("et", group, Role.BETWEEN))
    return spelled + _below_twenty(rest, group)


def _below_twenty(value: int, group: int) -> list[Morpheme]:
    """What is above ten in 71 to 79 and 91 to 99 has its share in the tens, as in 11 to 19."""
    if value < 17:
        return spell_small(SMALL[value], value, group)
    return spell_small("dix", 10, group) + spell_small(SMALL[value - 10], value - 10, group)
