"""ciento veinti·ún millones tres·cientos mil cuatro

One is `uno` at the end of a number and `un` before mil and millones: treinta y un mil, veintiún
mil. In veintidós, veintitrés and veintiséis the accent marks that the last syllable is stressed.
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
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince "
    "dieciséis diecisiete dieciocho diecinueve"
)
TENFOLD = ("", "", *words("veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa"))
ACCENTED = {"un": "ún", "dos": "dós", "tres": "trés", "seis": "séis"}
WHOLE_HUNDREDS = {5: "quinientos", 7: "setecientos", 9: "novecientos"}


def name(number: int) -> list[Morpheme]:
    if number == 0:
        return [says("cero", 0, UNITS)]
    said: list[Morpheme] = []
    for group, value in groups(number):
        if group == 1 and value == 1:
            said.append(says("mil", 1, UNITS, SCALE))
            continue
        said += _hundreds(value, group) + _below_hundred(value % 100, group)
        if group:
            scale = "mil" if group == 1 else "millones" if value > 1 else "millón"
            said.append(says(scale, group, SCALE))
    return said


def joint(left: str, right: str) -> str:
    return "" if left == "veinti" or right == "cientos" else " "


def _hundreds(value: int, group: int) -> list[Morpheme]:
    hundreds, rest = divmod(value, 100)
    if hundreds == 0:
        return []
    if hundreds == 1:
        return [says("ciento" if rest else "cien", group, HUNDREDS, HUNDRED)]
    if hundreds in WHOLE_HUNDREDS:
        return [says(WHOLE_HUNDREDS[hundreds], group, HUNDREDS, HUNDRED)]
    return [says(SMALL[hundreds], group, HUNDREDS), says("cientos", group, HUNDRED)]


def _below_hundred(value: int, group: int) -> list[Morpheme]:
    tens, units = divmod(value, 10)
    if tens == 1:
        return [says(SMALL[value], group, TENS, UNITS) if units else says("diez", group, TENS)]
    one = "un" if units == 1 and group else SMALL[units]
    if tens == 2 and units:
        return [says("veinti", group, TENS), says(ACCENTED.get(one, one), group, UNITS)]
    said = [says(TENFOLD[tens], group, TENS)] if tens else []
    if tens and units:
        said.append(says("y", group, BETWEEN))
    return said + ([says(one, group, UNITS)] if units else [])
