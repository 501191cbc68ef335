"""ein·hundert·ein·und·zwanzig Millionen drei·hundert·tausend·vier, and one word up to a million

One is `eins` at the end of a number, `eine` before Million and `ein` elsewhere: einhundertein-
tausend, einhundertein Millionen.
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
    "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn "
    "sechzehn siebzehn achtzehn neunzehn"
)
TENFOLD = ("", "", *words("zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig"))
MILLIONS = ("Million", "Millionen")


def name(number: int) -> list[Morpheme]:
    if number == 0:
        return [says("null", 0, UNITS)]
    said: list[Morpheme] = []
    for group, value in groups(number):
        said += _below_thousand(value, group)
        if group:
            scale = "tausend" if group == 1 else MILLIONS[value > 1]
            said.append(says(scale, group, SCALE))
    return said


def joint(left: str, right: str) -> str:
    return " " if left in MILLIONS or right in MILLIONS else ""


def _below_thousand(value: int, group: int) -> list[Morpheme]:
    said = []
    if value >= 100:
        said = [says(SMALL[value // 100], group, HUNDREDS), says("hundert", group, HUNDRED)]
    if value % 100 == 1:
        one = "eins" if group == 0 else "eine" if group == 2 and value == 1 else "ein"
        return [*said, says(one, group, UNITS)]
    return said + _below_hundred(value % 100, group)


def _below_hundred(value: int, group: int) -> list[Morpheme]:
    tens, units = divmod(value, 10)
    if tens == 1:
        return [says(SMALL[value], group, TENS, UNITS) if units else says("zehn", group, TENS)]
    said = [says(SMALL[units], group, UNITS)] if units else []
    if tens and units:
        said.append(says("und", group, BETWEEN))
    return said + ([says(TENFOLD[tens], group, TENS)] if tens else [])
