"""ciento veinti·ún millones tres·cientos mil cuatro

One is `uno` at the end of a number and `un` before mil and millones: treinta y un mil, veintiún
mil. In veintidós, veintitrés and veintiséis the accent marks that the last syllable is stressed.
"""

from __future__ import annotations

from regard.data.number_names import Morpheme, Role, morpheme, spell_groups, spell_small, words

SMALL = words(
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince "
    "dieciséis diecisiete dieciocho diecinueve"
)
TENFOLD = ("", "", *words("veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa"))
ACCENTED = {"un": "ún", "dos": "dós", "tres": "trés", "seis": "séis"}
WHOLE_HUNDREDS = {5: "quinientos", 7: "setecientos", 9: "novecientos"}


def spell(number: int) -> list[Morpheme]:
    return spell_groups(number, "cero", _group)


def separator(left: str, right: str) -> str:
    return "" if left == "veinti" or right == "cientos" else " "


def _group(value: int, group: int) -> list[Morpheme]:
    if group == 1 and value == 1:
        return [morpheme("mil", 1, Role.UNITS, Role.SCALE)]
    scale = ("", "mil", "millones" if value > 1 else "millón")[group]
    spelled = _hundreds(value, group) + _below_hundred(value % 100, group)
    return spelled + ([morpheme(scale, group, Role.SCALE)] if group else [])


def _hundreds(value: int, group: int) -> list[Morpheme]:
    hundreds, rest = divmod(value, 100)
    if hundreds == 0:
        return []
    if hundreds == 1:
        return [morpheme("ciento" if rest else "cien", group, Role.HUNDREDS, Role.HUNDRED)]
    if hundreds in WHOLE_HUNDREDS:
        return [morpheme(WHOLE_HUNDREDS[hundreds], group, Role.HUNDREDS, Role.HUNDRED)]
    return [
        morpheme(SMALL[hundreds], group, Role.HUNDREDS),
        morpheme("cientos", group, Role.HUNDRED),
    ]


def _below_hundred(value: int, group: int) -> list[Morpheme]:
    if 10 <= value < 20:
        return spell_small(SMALL[value], value, group)
    tens, units = divmod(value, 10)
    digit = "un" if units == 1 and group else SMALL[units]
    if tens == 2 and units:
        digit = ACCENTED.get(digit, digit)
        return [morpheme("veinti", group, Role.TENS), *spell_small(digit, units, group)]
    spelled = [morpheme(TENFOLD[tens], group, Role.TENS)] if tens else []
    if tens and units:
        spelled.append(morpheme("y", group, Role.BETWEEN))
    return spelled + spell_small(digit, units, group)
