"""cent vingt et un millions trois cent mille quatre, hyphens below a hundred but for `et`

Seventy is sixty and ten, ninety is four twenties and ten: soixante·et·onze, quatre·vingt·dix·neuf.
Cents and vingts lose their s before another number, and mille is one, but millions are things.
"""

from __future__ import annotations

from regard.data.number_names import (
    BETWEEN,
    HUNDRED,
    HUNDREDS,
    SCALE,
    TENS,
    UNITS,
    Morpheme,
    groups,
    says,
    words,
)

SMALL = words(
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize"
)
TENFOLD = ("", "", "vingt", "trente", "quarante", "cinquante", "soixante")


def name(number: int) -> list[Morpheme]:
    if number == 0:
        return [says("zéro", 0, UNITS)]
    said: list[Morpheme] = []
    for group, value in groups(number):
        if group == 1 and value == 1:
            said.append(says("mille", 1, UNITS, SCALE))
            continue
        said += _below_thousand(value, group)
        if group:
            scale = "mille" if group == 1 else "millions" if value > 1 else "million"
            said.append(says(scale, group, SCALE))
    return said


def joint(left: str, right: str) -> str:
    if left == "quatre" and right.startswith("vingt"):
        return "-"
    return "-" if left in (*TENFOLD, "dix") and right in SMALL else " "


def _below_thousand(value: int, group: int) -> list[Morpheme]:
    hundreds, rest = divmod(value, 100)
    said = _below_hundred(rest, group)
    if hundreds > 1:
        ending = "s" if rest == 0 and group != 1 else ""
        digit = says(SMALL[hundreds], group, HUNDREDS)
        return [digit, says(f"cent{ending}", group, HUNDRED), *said]
    return [says("cent", group, HUNDREDS, HUNDRED), *said] if hundreds else said


def _below_hundred(value: int, group: int) -> list[Morpheme]:
    if value < 20:
        return _below_twenty(value, group)
    if value >= 80:
        ending = "s" if value == 80 and group != 1 else ""
        twenties = [says("quatre", group, TENS), says(f"vingt{ending}", group, TENS)]
        return twenties + _below_twenty(value - 80, group)
    tens = min(value // 10, 6)
    rest = value - 10 * tens
    said = [says(TENFOLD[tens], group, TENS)]
    if rest in (1, 11):
        said.append(says("et", group, BETWEEN))
    return said + _below_twenty(rest, group)


def _below_twenty(value: int, group: int) -> list[Morpheme]:
    """What is above ten in 71 to 79 and 91 to 99 has its share in the tens, as in 11 to 19."""
    if value == 0:
        return []
    if value < 10:
        return [says(SMALL[value], group, UNITS)]
    if value == 10:
        return [says("dix", group, TENS)]
    if value < 17:
        return [says(SMALL[value], group, TENS, UNITS)]
    return [says("dix", group, TENS), says(SMALL[value - 10], group, UNITS)]
