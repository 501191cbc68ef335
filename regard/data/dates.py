"""Dates in many spellings → ISO 8601: the 31st of December, 1999 → 1999-12-31.

English, German and French, long and short, and only what can be read in one way: 12/31/1999 and
31/12/1999 are both taken, 5/6/1999 is not. Digits are tokens of their own, names of months are
whole, and `_` stands for a blank, so that tokens put together are the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random
from typing import NamedTuple

from regard.data.number_names import words
from regard.data.sequences import Example, Examples

BLANK = "_"
LITERAL = re.compile(r"\w+|\W")  # a word, or one mark

MONTHS = {
    "en": words(
        "January February March April May June July August September October November December"
    ),
    "de": words(
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"
    ),
    "fr": words(
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre"
    ),
}
SHORT_MONTHS = {
    "en": words("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"),
    "de": words("Jan Feb März Apr Mai Juni Juli Aug Sept Okt Nov Dez"),
    "fr": words("janv févr mars avr mai juin juil août sept oct nov déc"),
}
WEEKDAYS = {
    "en": words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday"),
    "de": words("Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag"),
    "fr": words("lundi mardi mercredi jeudi vendredi samedi dimanche"),
}

# D and M are numbers with two digits, d and m without a leading zero.
SPELLINGS = {
    "en": (
        "{d} {month} {year}",
        "{month} {d}, {year}",
        "{d}{th} of {month} {year}",
        "{month} {d}{th}, {year}",
        "the {d}{th} of {month}, {year}",
        "{weekday}, {d} {month} {year}",
        "{weekday}, {month} {d}, {year}",
        "{d} {short} {year}",
        "{short} {d}, {year}",
        "{m}/{d}/{year}",
        "{M}/{D}/{year}",
        "{year}/{M}/{D}",
    ),
    "de": (
        "{d}. {month} {year}",
        "den {d}. {month} {year}",
        "{weekday}, {d}. {month} {year}",
        "{weekday}, den {d}. {month} {year}",
        "{d}. {short} {year}",
        "{d}.{m}.{year}",
        "{D}.{M}.{year}",
    ),
    "fr": (
        "{d}{er} {month} {year}",
        "le {d}{er} {month} {year}",
        "{weekday} {d}{er} {month} {year}",
        "le {weekday} {d}{er} {month} {year}",
        "{d}{er} {short} {year}",
        "{d}/{m}/{year}",
        "{D}/{M}/{year}",
    ),
}
LANGUAGES = tuple(SPELLINGS)


@dataclass(frozen=True)
class DateExample(Example):
    """A date as people write it, and as ISO 8601 does."""

    date: date
    language: str

    @property
    def source_text(self) -> str:
        return join_tokens(self.source)

    @property
    def target_text(self) -> str:
        return join_tokens(self.target)


class Piece(NamedTuple):
    """A token, the part of the date it belongs to and, of a number, the place of its digit."""

    token: str
    part: str | None = None  # year, month or day
    place: int | None = None  # 0 is the last digit; None where the token is the whole part


def join_tokens(tokens: Sequence[str]) -> str:
    """Write tokens as one text, `_` as the blank it stands for."""
    return "".join(tokens).replace(BLANK, " ")


def date_example(day: date, language: str, spelling: str) -> DateExample:
    """One date in one of the SPELLINGS of a language, with its gold alignment.

    A digit is linked to the same digit, or else to all of its part of the date: both digits of 03
    to March, and to 3.
    """
    source = list(_pieces(spelling, day, language))
    target = [*_number("year", f"{day:%Y}"), Piece("-")]
    target += [*_number("month", f"{day:%m}"), Piece("-"), *_number("day", f"{day:%d}")]
    links = []
    for j, piece in enumerate(target):
        part = [(i, s) for i, s in enumerate(source) if piece.part and s.part == piece.part]
        same_place = [i for i, s in part if s.place == piece.place]
        links += [(i, j) for i in same_place or [i for i, _ in part]]
    source_tokens, target_tokens = (tuple(piece.token for piece in p) for p in (source, target))
    return DateExample(source_tokens, target_tokens, tuple(sorted(links)), day, language)


def date_examples(
    seed: int,
    split: str,
    *,
    languages: Sequence[str] = LANGUAGES,
    first_year: int = 1900,
    last_year: int = 2099,
) -> Examples[date, DateExample]:
    """Dates of these years in spellings of these languages → ISO 8601, ambiguous ones left out."""
    for language in languages:
        if language not in LANGUAGES:
            raise ValueError(f"languages holds {language!r}, must be some of {LANGUAGES}")
    if not 1000 <= first_year <= last_year <= 9999:
        raise ValueError(
            f"first_year ({first_year}) and last_year ({last_year}) must rise from 1000 to 9999"
        )
    first = date(first_year, 1, 1)
    days = (date(last_year, 12, 31) - first).days

    def draw(rng: Random) -> Iterator[date]:
        while True:
            yield first + timedelta(days=rng.randint(0, days))

    def make(day: date, rng: Random) -> DateExample:
        language = rng.choice(languages)
        fitting = [spelling for spelling in SPELLINGS[language] if is_unambiguous(spelling, day)]
        return date_example(day, language, rng.choice(fitting))

    return Examples(draw, make, seed, split)


def is_unambiguous(spelling: str, day: date) -> bool:
    """Whether the day cannot be taken for the month.

    With slashes, Americans write the month first and others the day: only a day above 12, or one
    that is the number of its month, tells them apart. Dots have the day first everywhere.
    """
    either = spelling.endswith("/{year}")
    return not either or day.day > 12 or day.day == day.month


def _pieces(spelling: str, day: date, language: str) -> Iterator[Piece]:
    """The spelling, filled in for a date, token by token."""
    for index, part in enumerate(re.split(r"\{(\w+)\}", spelling)):
        if index % 2:  # what stood in braces
            yield from _field(part, day, language)
        else:
            yield from (Piece(BLANK if token == " " else token) for token in LITERAL.findall(part))


def _field(field: str, day: date, language: str) -> list[Piece]:
    if field in ("d", "D"):
        return _number("day", str(day.day) if field == "d" else f"{day:%d}")
    if field in ("m", "M"):
        return _number("month", str(day.month) if field == "m" else f"{day:%m}")
    if field == "year":
        return _number("year", f"{day:%Y}")
    if field == "month":
        return [Piece(MONTHS[language][day.month - 1], "month")]
    if field == "short":
        short = SHORT_MONTHS[language][day.month - 1]
        dotted = language != "en" and short not in MONTHS[language]
        return [Piece(short, "month"), *([Piece(".")] if dotted else [])]
    if field == "weekday":
        return [Piece(WEEKDAYS[language][day.weekday()])]
    ending = _ending(field, day.day)
    return [Piece(ending)] if ending else []


def _ending(field: str, day: int) -> str:
    """31st in English, 1er in French and nothing for its other days."""
    if field == "er":
        return "er" if day == 1 else ""
    if day in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def _number(part: str, digits: str) -> list[Piece]:
    last = len(digits) - 1
    return [Piece(digit, part, last - index) for index, digit in enumerate(digits)]
