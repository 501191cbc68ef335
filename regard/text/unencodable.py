"""Texts that a tokenizer has no way to write down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import tokenizers

from regard.text.counting import WHITESPACE, WORD_PATTERN, Fold


@dataclass(frozen=True)
class Spellable:
    """What a tokenizer without an unknown token knows; the library drops the rest in silence."""

    fold: Fold
    words: Callable[[str], Iterator[tuple[str, int]]] | None  # of kinds that know words only
    known: frozenset[str]  # words, or characters
    longest: int | None  # characters of a word

    @classmethod
    def of(cls, kind: str, inner: tokenizers.Tokenizer) -> Spellable | None:
        """None for bytes, which can spell everything."""
        if kind == "byte-bpe" or getattr(inner.model, "byte_fallback", False):
            return None
        tokens = inner.get_vocab()
        characters = {token for token in tokens if len(token) == 1}
        if kind != "character":
            characters.update(WHITESPACE)  # they stand between words
        return cls(
            fold=inner.normalizer.normalize_str if inner.normalizer else str,
            words=_splitter(inner) if kind == "word" else None,
            known=frozenset(tokens if kind == "word" else characters),
            longest=getattr(inner.model, "max_input_chars_per_word", None),
        )

    def check(self, text: str) -> None:
        """Refuse a word or a character that was never seen, and say where it stands."""
        if self.words is not None:
            self._check_words(text)
        elif not self.known.issuperset(self.fold(text)):
            folds = enumerate(map(self.fold, text))
            at = next(at for at, folded in folds if not self.known.issuperset(folded))
            raise _not_in_vocabulary("character", text[at], at)
        if self.longest is not None:
            self._check_lengths(text, self.longest)

    def _check_words(self, text: str) -> None:
        assert self.words is not None
        for word, position in self.words(text):
            if self.fold(word) not in self.known:
                raise _not_in_vocabulary("word", word, position)

    def _check_lengths(self, text: str, longest: int) -> None:
        for word in WORD_PATTERN.finditer(text):
            if len(self.fold(word[0])) > longest:
                raise ValueError(
                    f"text: the word at position {word.start()} has {len(word[0])} characters; "
                    f"above {longest} it would be the unknown, and there is no such token"
                )


def _splitter(inner: tokenizers.Tokenizer) -> Callable[[str], Iterator[tuple[str, int]]]:
    """What cuts a text into words, and says where each begins."""
    cut = inner.pre_tokenizer

    def words(text: str) -> Iterator[tuple[str, int]]:
        pieces = [(text, (0, len(text)))] if cut is None else cut.pre_tokenize_str(text)
        return ((word, begin) for word, (begin, _) in pieces)

    return words


def _not_in_vocabulary(what: str, piece: str, position: int) -> ValueError:
    """The error for a word or character that cannot be encoded."""
    return ValueError(
        f"text: the {what} {piece!r} at position {position} is not in the vocabulary, "
        "and there is no unknown token to stand for it"
    )


def check_writable(text: str) -> None:
    """Refuse half characters (lone surrogates), which no UTF-8 file can hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as reason:
        code = f"U+{ord(text[reason.start]):04X}"
        raise ValueError(
            f"text: {code} at position {reason.start} is half a character (a lone surrogate)"
        ) from None
