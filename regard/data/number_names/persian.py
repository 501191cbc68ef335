"""صد و بیست و یک میلیون و سیصد هزار و چهار: a `و` between all parts but digit and scale"""

from __future__ import annotations

from regard.data.number_names import (
    AFTER_HUNDRED,
    AFTER_SCALE,
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
    "صفر یک دو سه چهار پنج شش هفت هشت نه ده یازده دوازده سیزده چهارده پانزده شانزده هفده هجده نوزده"
)
TENFOLD = ("", "", *words("بیست سی چهل پنجاه شصت هفتاد هشتاد نود"))
WHOLE_HUNDREDS = {1: "صد", 2: "دویست", 3: "سیصد", 5: "پانصد"}
SCALES = ("", "هزار", "میلیون")


def name(number: int) -> list[Morpheme]:
    if number == 0:
        return [says("صفر", 0, UNITS)]
    said: list[Morpheme] = []
    above = 0  # the group before, whose scale has just been said
    for group, value in groups(number):
        if said:
            said.append(says("و", above, AFTER_SCALE))
        above = group
        if group == 1 and value == 1:
            said.append(says(SCALES[1], 1, UNITS, SCALE))
            continue
        said += _below_thousand(value, group)
        if group:
            said.append(says(SCALES[group], group, SCALE))
    return said


def joint(left: str, right: str) -> str:
    return "" if left in SMALL and right == "صد" else " "


def _below_thousand(value: int, group: int) -> list[Morpheme]:
    hundreds, rest = divmod(value, 100)
    said = []
    if hundreds in WHOLE_HUNDREDS:
        said = [says(WHOLE_HUNDREDS[hundreds], group, HUNDREDS, HUNDRED)]
    elif hundreds:
        said = [says(SMALL[hundreds], group, HUNDREDS), says("صد", group, HUNDRED)]
    if hundreds and rest:
        said.append(says("و", group, AFTER_HUNDRED))
    return said + _below_hundred(rest, group)


def _below_hundred(value: int, group: int) -> list[Morpheme]:
    tens, units = divmod(value, 10)
    if tens == 1:
        return [says(SMALL[value], group, TENS, UNITS) if units else says("ده", group, TENS)]
    said = [says(TENFOLD[tens], group, TENS)] if tens else []
    if tens and units:
        said.append(says("و", group, BETWEEN))
    return said + ([says(SMALL[units], group, UNITS)] if units else [])
