"""one hundred and twenty-one million, three hundred thousand and four"""

from __future__ import annotations

from regard.data.number_names import (
    AFTER_HUNDRED,
    AFTER_SCALE,
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
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
TENFOLD = ("", "", *words("twenty thirty forty fifty sixty seventy eighty ninety"))
SCALES = ("", "thousand", "million")


def name(number: int) -> list[Morpheme]:
    if number == 0:
        return [says("zero", 0, UNITS)]
    said: list[Morpheme] = []
    for group, value in groups(number):
        if said and group == 0 and value < 100:
            above = 1 if number // 1000 % 1000 else 2
            said.append(says("and", above, AFTER_SCALE))
        said += _below_thousand(value, group)
        if group:
            said.append(says(SCALES[group], group, SCALE))
    return said


def joint(left: str, right: str) -> str:
    if left in TENFOLD and right in SMALL[1:10]:
        return "-"
    return ", " if left in SCALES and right != "and" else " "


def _below_thousand(value: int, group: int) -> list[Morpheme]:
    said = []
    if value >= 100:
        said = [says(SMALL[value // 100], group, HUNDREDS), says("hundred", group, HUNDRED)]
        if value % 100:
            said.append(says("and", group, AFTER_HUNDRED))
    return said + _below_hundred(value % 100, group)


def _below_hundred(value: int, group: int) -> list[Morpheme]:
    tens, units = divmod(value, 10)
    if tens == 1:
        return [says(SMALL[value], group, TENS, UNITS) if units else says("ten", group, TENS)]
    said = [says(TENFOLD[tens], group, TENS)] if tens else []
    return said + ([says(SMALL[units], group, UNITS)] if units else [])
