"""ein·hundert·ein·und·zwanzig Millionen drei·hundert·tausend·vier, and one word up to a million

One is `eins` at the end of a number, `eine` before Million and `ein` elsewhere: einhundertein-
tausend, einhundertein Millionen.
"""

from __future__ import annotations

from regard.data.number_names import Morpheme, Role, morpheme, spell_groups, spell_small, words

SMALL = words(
    "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn "
    "sechzehn siebzehn achtzehn neunzehn"
)
TENFOLD = ("", "", *words("zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig"))
MILLIONS = ("Million", "Millionen")


def spell(number: int) -> list[Morpheme]:
    return spell_groups(number, "null", _group)


def separator(left: str, right: str) -> str:
    return " " if left in MILLIONS or right in MILLIONS else ""


def _group(value: int, group: int) -> list[Morpheme]:
    scale = ("", "tausend", MILLIONS[value > 1])[group]
    return _below_thousand(value, group) + ([morpheme(scale, group, Role.SCALE)] if group else [])


def _below_thousand(value: int, group: int) -> list[Morpheme]:
    spelled = []
    if value >= 100:
        spelled = [
            morpheme(SMALL[value // 100], group, Role.HUNDREDS),
            morpheme("hundert", group, Role.HUNDRED),
        ]
    if value % 100 == 1:
        one = "eins" if group == 0 else "eine" if group == 2 and value == 1 else "ein"
        return [*spelled, morpheme(one, group, Role.UNITS)]
    return spelled + _below_hundred(value % 100, group)


def _below_hundred(value: int, group: int) -> list[Morpheme]:
    if value < 20:
        return spell_small(SMALL[value], value, group)
    tens, units = divmod(value, 10)
    spelled = spell_small(SMALL[units], units, group)
    if units:
        spelled.append(morpheme("und", group, Role.BETWEEN))
    return [*spelled, morpheme(TENFOLD[tens], group, Role.TENS)]
