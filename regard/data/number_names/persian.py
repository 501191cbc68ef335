"""صد و بیست و یک میلیون و سیصد هزار و چهار: a `و` between all parts but digit and scale"""

from __future__ import annotations

from regard.data.number_names import Morpheme, Role, morpheme, spell_groups, spell_small, words

SMALL = words(
    "صفر یک دو سه چهار پنج شش هفت هشت نه ده یازده دوازده سیزده چهارده پانزده شانزده هفده هجده نوزده"
)
TENFOLD = ("", "", *words("بیست سی چهل پنجاه شصت هفتاد هشتاد نود"))
WHOLE_HUNDREDS = {1: "صد", 2: "دویست", 3: "سیصد", 5: "پانصد"}
SCALES = ("", "هزار", "میلیون")


def spell(number: int) -> list[Morpheme]:
    return spell_groups(number, "صفر", _group, _connect)


def separator(left: str, right: str) -> str:
    return "" if left in SMALL and right == "صد" else " "


def _group(value: int, group: int) -> list[Morpheme]:
    if group == 1 and value == 1:
        return [morpheme(SCALES[1], 1, Role.UNITS, Role.SCALE)]
    scale = [morpheme(SCALES[group], group, Role.SCALE)] if group else []
    return _below_thousand(value, group) + scale


def _connect(value: int, group: int, above: int) -> list[Morpheme]:
    return [morpheme("و", above, Role.AFTER_SCALE)]


def _below_thousand(value: int, group: int) -> list[Morpheme]:
    hundreds, rest = divmod(value, 100)
    spelled = []
    if hundreds in WHOLE_HUNDREDS:
        spelled = [morpheme(WHOLE_HUNDREDS[hundreds], group, Role.HUNDREDS, Role.HUNDRED)]
    elif hundreds:
        spelled = [
            morpheme(SMALL[hundreds], group, Role.HUNDREDS),
            morpheme("صد", group, Role.HUNDRED),
        ]
    if hundreds and rest:
        spelled.append(morpheme("و", group, Role.AFTER_HUNDRED))
    return spelled + _below_hundred(rest, group)


def _below_hundred(value: int, group: int) -> list[Morpheme]:
    if value < 20:
        return spell_small(SMALL[value], value, group)
    tens, units = divmod(value, 10)
    spelled = [morpheme(TENFOLD[tens], group, Role.TENS)]
    if units:
        spelled.append(morpheme("و", group, Role.BETWEEN))
    return spelled + spell_small(SMALL[units], units, group)
