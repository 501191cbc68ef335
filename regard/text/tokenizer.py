"""Strings to ids and back, with every token's place in the raw text."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import tokenizers

from .config import TextConfig
from .counting import BLANKS
from .harmless import refuse_harmful
from .kinds import MARK, kind_of, specials_of, unknown_of
from .specials import END, PAD, START, UNKNOWN
from .strangers import Spellable, check_writable
from .tables import read_tables
from .training import train

_TEXTS = 1000  # in one call to the library, at most,
_CHARACTERS = 1_000_000  # and not many more of these
_MARKED = BLANKS + MARK  # what a mark may stand for in a text


@dataclass(frozen=True)
class Encoded:
    """A text as ids. What they are called and where they stand is worked out when asked."""

    text: str
    ids: list[int]
    tokenizer: Tokenizer = field(repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def tokens(self) -> list[str]:
        """The names of the ids in the vocabulary."""
        return self.tokenizer.tokens_of(self.ids)

    @cached_property
    def offsets(self) -> list[tuple[int, int]]:
        """For each token, where it begins and ends in the text, in characters.

        Two tokens may share a character (bytes of one letter; İ, lowercased to two). A mark that
        was put before a word is no piece of the text and begins where it ends.
        """
        return self.tokenizer.offsets_of(self.text)


class Tokenizer:
    """What a run's `tokenizer.json` does, for all kinds alike.

    Specials are never added and never read out of a text: whoever wants `<s>` in front puts its id
    there. Words are the exception, since corpora spell `<unk>` out: a word that is spelled like a
    special is that special.
    """

    def __init__(self, inner: tokenizers.Tokenizer):
        # Files from elsewhere may ask for texts to be cut short or filled up.
        inner.no_truncation()
        inner.no_padding()
        state = json.loads(inner.to_str())
        self._inner = inner
        self.kind = kind_of(state)
        ids = inner.get_vocab()
        self.size = max(ids.values(), default=-1) + 1
        self._tokens = [""] * self.size
        for token, number in ids.items():
            self._tokens[number] = token
        self.specials = tuple(sorted(specials_of(state) & ids.keys(), key=ids.__getitem__))
        declared = {name: ids[name] for name in self.specials}
        self.pad, self.start, self.end = map(declared.get, (PAD, START, END))
        unknown = unknown_of(state)
        self.unknown = declared.get(UNKNOWN) if unknown is None else ids[unknown]
        # The unknown is shown when decoding: it stands for a piece of the text, if not for which.
        self._silent = frozenset(declared.values()) - {self.unknown}
        self._spellable = Spellable.of(self.kind, inner) if unknown is None else None
        # Without folding, a character's id is a look into a table, and long texts fit in memory.
        plain = self.kind == "character" and inner.normalizer is None
        self._characters = ids if plain else None

    @classmethod
    def train(
        cls, lines: Iterable[str], config: TextConfig, specials: tuple[str, ...]
    ) -> Tokenizer:
        """Learn from lines, read once. What the recipe says about specials goes before the task."""
        chosen = specials if config.specials is None else config.specials
        return cls(train(lines, config, chosen))

    @classmethod
    def from_bpe_tables(cls, encoder: str | Path, merges: str | Path) -> Tokenizer:
        """GPT-2's pair of files: tokens with their ids (JSON), and merges line by line; gz too."""
        return cls(read_tables(Path(encoder), Path(merges)))

    @classmethod
    def load(cls, path: str | Path) -> Tokenizer:
        """Any `tokenizer.json`, trained here or elsewhere."""
        if not Path(path).is_file():
            raise ValueError(
                f"path ({str(path)!r}) must be a tokenizer.json: there is no such file"
            )
        return cls.from_bytes(Path(path).read_bytes(), path)

    @classmethod
    def from_bytes(cls, content: bytes, path: str | Path) -> Tokenizer:
        """The content of a `tokenizer.json`, and the path that errors call it by."""
        try:
            return cls.from_json(content.decode("utf-8"))
        except ValueError as reason:
            raise ValueError(f"path ({str(path)!r}) is no tokenizer.json: {reason}") from None

    @classmethod
    def from_json(cls, text: str) -> Tokenizer:
        """The content of a `tokenizer.json`; parts that a stranger could do harm with are
        refused."""
        checked = refuse_harmful(text)
        try:
            return cls(tokenizers.Tokenizer.from_str(checked))
        except Exception as reason:  # the library raises nothing narrower
            raise ValueError(str(reason)) from None
        except BaseException as reason:
            if type(reason).__name__ != "PanicException":  # its own, which it has no module for
                raise
            raise ValueError(f"the library gives up on it: {reason}") from None

    def save(self, path: str | Path) -> None:
        """Write `tokenizer.json` whole or not at all."""
        path = Path(path)
        beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
        try:
            with beside.open("x", encoding="utf-8", newline="\n") as file:
                file.write(self.to_json())
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)

    def to_json(self) -> str:
        """What `save` writes."""
        return self._inner.to_str(pretty=True)

    def encode(self, text: str) -> Encoded:
        """One text."""
        [ids] = self._ids([text])
        return Encoded(text, ids, self)

    def encode_all(self, texts: Iterable[str]) -> Iterator[Encoded]:
        """Many texts, in their order, a batch of them in memory."""
        for batch in _batches(texts):
            for text, ids in zip(batch, self._ids(batch), strict=True):
                yield Encoded(text, ids, self)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, specials left out; the unknown is shown, for it stands for something."""
        said = [number for number in self._checked(ids) if number not in self._silent]
        return self._inner.decode(said, skip_special_tokens=False)

    def tokens_of(self, ids: Sequence[int]) -> list[str]:
        """The vocabulary's names of ids."""
        return [self._tokens[number] for number in self._checked(ids)]

    def id_of(self, token: str) -> int | None:
        """The id of a token of the vocabulary, None for others."""
        return self._inner.token_to_id(token)

    def offsets_of(self, text: str) -> list[tuple[int, int]]:
        """Where the tokens of a text stand in it."""
        encoding = self._inner.encode(text, add_special_tokens=False)
        if self.kind not in ("bpe", "unigram"):
            return encoding.offsets
        pairs = zip(encoding.tokens, encoding.offsets, strict=True)
        return [
            # The library gives a mark the place of the character it was put before.
            (start, start) if token == MARK and text[start:end].strip(_MARKED) else (start, end)
            for token, (start, end) in pairs
        ]

    def _checked(self, ids: Iterable[int]) -> list[int]:
        numbers = [int(number) for number in ids]
        wrong = next((number for number in numbers if not 0 <= number < self.size), None)
        if wrong is not None:
            raise ValueError(f"ids: {wrong} is not in the vocabulary, 0 to {self.size - 1}")
        return numbers

    def _ids(self, texts: list[str]) -> list[list[int]]:
        for text in texts:
            check_writable(text)
            if self._spellable is not None:
                self._spellable.check(text)
        if self._characters is not None:
            known = self._characters
            other = -1 if self.unknown is None else self.unknown  # refused above, if it were -1
            return [[known.get(character, other) for character in text] for text in texts]
        found = self._inner.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in found]


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Texts a thousand at a time, fewer when they are long."""
    batch: list[str] = []
    characters = 0
    for text in texts:
        batch.append(text)
        characters += len(text)
        if len(batch) == _TEXTS or characters >= _CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
