"""one hundred and twenty-one million, three hundred thousand and four"""

from __future__ import annotations

from regard.data.number_names import Morpheme, Role, morpheme, spell_groups, spell_small, words

SMALL = words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
TENFOLD = ("", "", *words("twenty thirty forty fifty sixty seventy eighty ninety"))
SCALES = ("", "thousand", "million")


def spell(number: int) -> list[Morpheme]:
    return spell_groups(number, "zero", _group, _connect)


def separator(left: str, right: str) -> str:
    if left in TENFOLD and right in SMALL[1:10]:
        return "-"
    return ", " if left in SCALES and right != "and" else " "


def _group(value: int, group: int) -> list[Morpheme]:
    scale = [morpheme(SCALES[group], group, Role.SCALE)] if group else []
    return _below_thousand(value, group) + scale


def _connect(value: int, group: int, above: int) -> list[Morpheme]:
    return [morpheme("and", above, Role.AFTER_SCALE)] if group == 0 and value < 100 else []


def _below_thousand(value: int, group: int) -> list[Morpheme]:
    spelled = []
    if value >= 100:
        spelled = [
            morpheme(SMALL[value // 100], group, Role.HUNDREDS),
            morpheme("hundred", group, Role.HUNDRED),
        ]
        if value % 100:
            spelled.append(morpheme("and", group, Role.AFTER_HUNDRED))
    return spelled + _below_hundred(value % 100, group)


def _below_hundred(value: int, group: int) -> list[Morpheme]:
    if value < 20:
        return spell_small(SMALL[value], value, group)
    tens, units = divmod(value, 10)
    return [morpheme(TENFOLD[tens], group, Role.TENS), *spell_small(SMALL[units], units, group)]
