"""Names of numbers, English → German, French, Spanish, Persian, from 0 to 999,999,999.

A small translation task with everything that makes translation hard: words change their order
(twenty-one, ein·und·zwanzig), two become one (one thousand, mille), one becomes many (ninety,
quatre-vingt-dix), some answer to nothing. Tokens are morphemes, and their links are gold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from random import Random

from regard.data.number_names import Language, Morpheme, english, french, german, persian, spanish
from regard.data.sequences import Example, Examples

LANGUAGES: dict[str, Language] = {
    "en": english,
    "de": german,
    "fr": french,
    "es": spanish,
    "fa": persian,
}
LARGEST = 999_999_999
DIGITS = len(str(LARGEST))


@dataclass(frozen=True)
class NumberExample(Example):
    """A number in English and in another language."""

    number: int
    language: str

    @property
    def source_text(self) -> str:
        return join_name(self.source, "en")

    @property
    def target_text(self) -> str:
        return join_name(self.target, self.language)


def morphemes(number: int, language: str) -> tuple[str, ...]:
    """The name of a number as morphemes: 21, "de" → ein, und, zwanzig."""
    return _texts(_spell(number, language))


def join_name(tokens: Sequence[str], language: str) -> str:
    """Write morphemes as one name: ein, und, zwanzig → einundzwanzig.

    Any tokens will do, so that a model's wrong answer can be shown too.
    """
    separator = _language(language).separator
    rest = (separator(left, right) + right for left, right in pairwise(tokens))
    return "".join([*tokens[:1], *rest])


def split_name(text: str, language: str) -> tuple[str, ...]:
    """Split a written name into morphemes: einundzwanzig → ein, und, zwanzig."""
    rest = _pattern(language).sub(" ", text).replace(",", " ").replace("-", " ").split()
    if rest:
        raise ValueError(f"text ({text!r}) holds {rest[0]!r}, which is in no name of a number")
    return tuple(_pattern(language).findall(text))


def number_example(number: int, language: str) -> NumberExample:
    """One number, English → language, with its gold alignment."""
    source, target = _spell(number, "en"), _spell(number, language)
    links = tuple(
        (i, j)
        for i, ours in enumerate(source)
        for j, theirs in enumerate(target)
        if ours.meanings & theirs.meanings
    )
    return NumberExample(_texts(source), _texts(target), links, number, language)


def number_examples(
    language: str, seed: int, split: str, *, digits: int = DIGITS
) -> Examples[int, NumberExample]:
    """Names of numbers of up to `digits` digits, English → language.

    Every length is equally likely, so that short numbers are not rare.
    """
    _language(language)
    if not 1 <= digits <= DIGITS:
        raise ValueError(f"digits ({digits}) must be 1 to {DIGITS}")

    def draw(rng: Random) -> Iterator[int]:
        # The length is drawn once: one in five of the numbers below ten belongs to valid, of others
        # one in twenty, so that a length drawn anew with each number would mostly come out as 1.
        length = rng.randint(1, digits)
        while True:
            yield rng.randrange(10 ** (length - 1) if length > 1 else 0, 10**length)

    def make(number: int, _rng: Random) -> NumberExample:
        return number_example(number, language)

    return Examples(draw, make, seed, split)


class NumberNames:
    """Pairs of names, English → one language; or → several, and then the English name is told
    which: "fa: twenty-one". One encoder serves them all.

    The tag: Johnson et al. (2017), "Google's multilingual neural machine translation system".
    """

    def __init__(self, languages: Sequence[str]):
        for language in languages:
            _language(language)
        self.languages = tuple(languages)
        self.tagged = len(self.languages) > 1

    def take(self, count: int, seed: int, split: str) -> list[NumberExample]:
        """So many examples, of all languages in turn."""
        share = -(-count // len(self.languages))
        drawn = [number_examples(each, seed, split).take(share) for each in self.languages]
        return [self._tag(example) for turn in zip(*drawn, strict=True) for example in turn][:count]

    def segment(self, text: str) -> str:
        """What a user writes, as a model reads it: twenty-one → twenty one."""
        text = text.strip().lower()
        if not self.tagged:
            return " ".join(split_name(text, "en"))
        tag, colon, name = text.partition(":")
        if not text or (colon and tag in self.languages):
            return " ".join([text[: len(tag) + 1], *split_name(name, "en")]) if text else ""
        tags = ", ".join(f"{language}:" for language in self.languages)
        raise ValueError(f"text ({text!r}) must begin with the language it asks for: {tags}")

    def join(self, said: str, source: str) -> str:
        """What a model said to a source, as a user writes it: ein und zwanzig → einundzwanzig."""
        return join_name(said.split(), self._language_of(source))

    def segment_target(self, text: str, source: str) -> str:
        """A translation of a source as a model says it: einundzwanzig → ein und zwanzig."""
        return " ".join(split_name(text.strip(), self._language_of(source)))

    def _language_of(self, source: str) -> str:
        """The language that a segmented source asks for."""
        return source.partition(":")[0] if self.tagged else self.languages[0]

    def _tag(self, example: NumberExample) -> NumberExample:
        if not self.tagged:
            return example
        source = (f"{example.language}:", *example.source)
        return replace(example, source=source, links=tuple((i + 1, j) for i, j in example.links))


def _language(language: str) -> Language:
    if language not in LANGUAGES:
        raise ValueError(f"language ({language!r}) must be one of {tuple(LANGUAGES)}")
    return LANGUAGES[language]


def _spell(number: int, language: str) -> list[Morpheme]:
    spelling = _language(language)
    if not 0 <= number <= LARGEST:
        raise ValueError(f"number ({number}) must be 0 to {LARGEST:,}")
    return spelling.spell(number)


def _texts(name: list[Morpheme]) -> tuple[str, ...]:
    return tuple(morpheme.text for morpheme in name)


@cache
def _pattern(language: str) -> re.Pattern[str]:
    """Any morpheme of the language, the longest that fits: dreizehn before drei."""
    known = {
        text
        for value in (*range(1000), *range(1000, 1_000_000, 1000), 1_000_000, 2_000_000)
        for text in morphemes(value, language)
    }
    return re.compile("|".join(sorted(known, key=len, reverse=True)))
