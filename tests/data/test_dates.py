"""Dates: a reader that knows the calendars of three languages finds the day that was meant."""

import re
from datetime import date

import pytest

from regard.data.dates import LANGUAGES, SPELLINGS, date_example, date_examples, is_unambiguous

NAMES = [
    "january jan januar janvier janv",
    "february feb februar février févr",
    "march mar märz mars",
    "april apr avril avr",
    "may mai",
    "june jun juni juin",
    "july jul juli juillet juil",
    "august aug août",
    "september sep sept septembre",
    "october oct okt oktober octobre",
    "november nov novembre",
    "december dec dez dezember décembre déc",
]
MONTH = {name: month for month, names in enumerate(NAMES, start=1) for name in names.split()}
LAST_DAY = date(1999, 12, 31)  # a Friday


def read(text: str) -> list[date]:
    """Every date that a text could mean."""
    year = int(re.search(r"\b\d{4}\b", text)[0])
    small = [int(number) for number in re.findall(r"\d+", text) if len(number) < 3]
    named = [MONTH[word] for word in re.findall(r"[^\W\d]+", text.lower()) if word in MONTH]
    if named:
        return [date(year, named[0], small[0])]
    if text.startswith(str(year)):
        return [date(year, small[0], small[1])]
    orders = [small] if "." in text else [small, small[::-1]]
    return sorted({date(year, month, day) for day, month in orders if month <= 12})


def test_every_spelling_can_be_read_in_one_way_only():
    for example in date_examples(3, "train").take(3_000):
        assert read(example.source_text) == [example.date], example.source_text
        assert example.target_text == example.date.isoformat()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_spelling_comes_up(language: str):
    texts = [e.source_text for e in date_examples(5, "train", languages=[language]).take(300)]
    number, pair, word = r"\d{1,2}", r"\d\d", r"[^\W\d]+\.?"
    for spelling in SPELLINGS[language]:
        pattern = re.escape(spelling).replace(r"\{", "{").replace(r"\}", "}")
        for field in ("{d}", "{m}"):
            pattern = pattern.replace(field, number)
        for field in ("{D}", "{M}"):
            pattern = pattern.replace(field, pair)
        for field in ("{month}", "{short}", "{weekday}"):
            pattern = pattern.replace(field, word)
        pattern = pattern.replace("{year}", r"\d{4}").replace("{er}", "(?:er)?")
        pattern = pattern.replace("{th}", "(?:st|nd|rd|th)")
        assert any(re.fullmatch(pattern, text) for text in texts), spelling


@pytest.mark.parametrize(
    ("language", "spelling", "text"),
    [
        ("en", "the {d}{th} of {month}, {year}", "the 31st of December, 1999"),
        ("en", "{weekday}, {month} {d}, {year}", "Friday, December 31, 1999"),
        ("en", "{short} {d}, {year}", "Dec 31, 1999"),
        ("en", "{m}/{d}/{year}", "12/31/1999"),
        ("de", "{weekday}, den {d}. {month} {year}", "Freitag, den 31. Dezember 1999"),
        ("de", "{d}. {short} {year}", "31. Dez. 1999"),
        ("de", "{d}.{m}.{year}", "31.12.1999"),
        ("fr", "le {weekday} {d}{er} {month} {year}", "le vendredi 31 décembre 1999"),
        ("fr", "{D}/{M}/{year}", "31/12/1999"),
    ],
)
def test_the_last_day_of_1999_in_many_words(language: str, spelling: str, text: str):
    assert spelling in SPELLINGS[language]
    example = date_example(LAST_DAY, language, spelling)
    assert (example.source_text, example.target_text) == (text, "1999-12-31")


@pytest.mark.parametrize(
    ("day", "language", "text"),
    [
        (1, "fr", "1er mai 2003"),
        (2, "fr", "2 mai 2003"),
        (1, "en", "1st of May 2003"),
        (22, "en", "22nd of May 2003"),
        (3, "en", "3rd of May 2003"),
        (13, "en", "13th of May 2003"),
    ],
)
def test_days_have_their_endings(day: int, language: str, text: str):
    spelling = "{d}{er} {month} {year}" if language == "fr" else "{d}{th} of {month} {year}"
    assert date_example(date(2003, 5, day), language, spelling).source_text == text


@pytest.mark.parametrize(
    ("month", "language", "text"),
    [
        (5, "de", "7. Mai 2003"),
        (2, "de", "7. Feb. 2003"),
        (8, "fr", "7 août 2003"),
        (2, "fr", "7 févr. 2003"),
        (9, "en", "7 Sep 2003"),
    ],
)
def test_a_dot_tells_that_a_month_is_cut_short(month: int, language: str, text: str):
    spelling = next(each for each in SPELLINGS[language] if "{short}" in each)
    assert date_example(date(2003, month, 7), language, spelling).source_text == text


def test_digits_are_linked_to_digits_and_months_to_their_names():
    example = date_example(date(1987, 3, 9), "de", "{d}. {month} {year}")
    assert example.source == ("9", ".", "_", "März", "_", "1", "9", "8", "7")
    assert example.target == tuple("1987-03-09")
    year = ((5, 0), (6, 1), (7, 2), (8, 3))
    assert set(example.links) == {*year, (3, 5), (3, 6), (0, 8), (0, 9)}


def test_in_numbers_each_digit_has_its_own_link():
    example = date_example(date(2046, 10, 25), "fr", "{D}/{M}/{year}")
    assert example.source == tuple("25/10/2046")
    swapped = {(0, 8), (1, 9), (3, 5), (4, 6), (6, 0), (7, 1), (8, 2), (9, 3)}
    assert set(example.links) == swapped


def test_slashes_are_left_to_days_that_are_no_months():
    assert not is_unambiguous("{m}/{d}/{year}", date(1999, 6, 5))
    assert is_unambiguous("{m}/{d}/{year}", date(1999, 5, 5))
    assert is_unambiguous("{m}/{d}/{year}", date(1999, 5, 13))
    assert is_unambiguous("{d}.{m}.{year}", date(1999, 6, 5))
    assert is_unambiguous("{year}/{M}/{D}", date(1999, 6, 5))


def test_a_day_belongs_to_one_split_in_all_its_spellings():
    days = [
        {example.date for example in date_examples(seed, split, last_year=1903).take(1_500)}
        for seed, split in ((1, "train"), (2, "valid"), (3, "test"))
    ]
    train, valid, test = days
    assert not (train & valid or train & test or valid & test)


def test_languages_and_years_can_be_chosen():
    chosen = date_examples(7, "test", languages=["fr"], first_year=1789, last_year=1799).take(50)
    assert {example.language for example in chosen} == {"fr"}
    assert all(1789 <= example.date.year <= 1799 for example in chosen)
    assert (
        date_examples(7, "test", languages=["fr"], first_year=1789, last_year=1799)[7] == chosen[7]
    )


def test_wrong_languages_and_years_are_refused():
    with pytest.raises(ValueError, match=r"languages holds 'it', must be some of \('en', 'de'"):
        date_examples(1, "train", languages=["en", "it"])
    with pytest.raises(ValueError, match=r"first_year \(2000\) and last_year \(1999\) must rise"):
        date_examples(1, "train", first_year=2000, last_year=1999)
