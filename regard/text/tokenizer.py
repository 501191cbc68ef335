"""Strings to ids and back, with every token's place in the raw text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import tokenizers
from tokenizers import processors

from regard.atomic import write_atomically
from regard.text.config import TextConfig
from regard.text.counting import WHITESPACE
from regard.text.harmless import refuse_harmful
from regard.text.hiding import hide_specials
from regard.text.kinds import WORD_MARK, kind_of, specials_of, unknown_of
from regard.text.roles import (
    check_roles,
    choose_specials,
    declare_roles,
    find_roles,
    roles_from_hugging_face,
)
from regard.text.tables import add_tokens, between_marks, read_tables, read_word_pieces
from regard.text.training import train
from regard.text.unencodable import Spellable, check_writable

T = TypeVar("T")
BYTEWISE = "byte-bpe"
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"  # what bytes that are no whole character decode to
_MAX_BATCH_TEXTS = 1000  # in one call to the library,
_MAX_BATCH_CHARACTERS = 1_000_000  # and not many more of these
_MARK_STANDS_FOR = WHITESPACE + WORD_MARK  # what a mark may stand for in a text


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
    def pieces(self) -> list[str]:
        """The tokens as people read them: their names, but of kind byte-bpe, where a name is a
        spelling of bytes (`ĠcafÃ©`), what they are in the text."""
        if self.tokenizer.kind != BYTEWISE:
            return self.tokens
        places = zip(self.tokens, self.offsets, strict=True)
        return [self.text[start:end] or token for token, (start, end) in places]

    @cached_property
    def offsets(self) -> list[tuple[int, int]]:
        """For each token, where it begins and ends in the text, in characters.

        Two tokens may share a character (bytes of one letter; İ, lowercased to two). A mark that
        was put before a word is no piece of the text and begins where it ends.
        """
        return self.tokenizer.offsets_of(self.text)


class Tokenizer:
    """Encodes and decodes text by a `tokenizer.json`, whatever its kind.

    Specials are never added and never read out of a text: whoever wants `<s>` in front puts its id
    there, and a text that spells `<s>` is text. A word that a vocabulary of words does not hold is
    the unknown, `<unk>` itself among them, as corpora write it.
    """

    def __init__(
        self,
        inner: tokenizers.Tokenizer,
        roles: Mapping[str, str] | None = None,
        special_tokens_map: Mapping[str, Any] | None = None,
    ):
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
        mapped = roles_from_hugging_face(special_tokens_map or {})
        found = find_roles(state, ids, roles or {}, mapped)
        if found != find_roles(state, ids, {}, {}):
            inner.post_processor = declare_roles(inner.post_processor, found, ids)
        self.roles = {role: ids[token] for role, token in found.items()}
        declared = specials_of(state).intersection(ids).union(found.values())
        self.specials = tuple(sorted(declared, key=ids.__getitem__))
        # The unknown is shown when decoding: it stands for a piece of the text, if not for which.
        # One that is also the end of a text, as GPT-2's, is not.
        alone = list(self.roles.values()).count(self.roles.get("unknown", -1)) == 1
        self._not_decoded = {ids[name] for name in self.specials} - {
            self.unknown if alone else None
        }
        self._encoder = hide_specials(state, self.specials) if self.specials else inner
        unwritable = unknown_of(state) is None
        self._spellable = Spellable.of(self.kind, self._encoder) if unwritable else None
        # Without folding, a character's id is a look into a table, and long texts fit in memory.
        words = {token["content"] for token in state["added_tokens"]}.difference(self.specials)
        plain = self.kind == "character" and inner.normalizer is None and not words
        self._characters = self._encoder.get_vocab() if plain else None

    @classmethod
    def train(cls, lines: Iterable[str], config: TextConfig, roles: tuple[str, ...]) -> Tokenizer:
        """Learn from lines, read once, with a special token for each role a task needs.

        What the recipe says about specials (`text.specials`, `text.roles`) goes before the task.
        """
        check_roles(roles)
        specials, given = choose_specials(roles, config.specials, config.roles or {})
        return cls(train(lines, config, specials, given.get("unknown")), given)

    @classmethod
    def from_bpe_tables(
        cls,
        encoder: str | Path,
        merges: str | Path,
        special_tokens_map: Mapping[str, Any] | None = None,
        *,
        prefix_space: bool = False,
        added: Mapping[int, tokenizers.AddedToken] | None = None,
    ) -> Tokenizer:
        """GPT-2's pair of files: tokens with their ids (JSON), and merges line by line; gz too.

        `added` are tokens that were added later, by their ids; with `prefix_space` a text is read
        as if a space stood before it.
        """
        inner = read_tables(Path(encoder), Path(merges), prefix_space)
        return cls(add_tokens(inner, added or {}), None, special_tokens_map)

    @classmethod
    def from_word_pieces(
        cls,
        path: str | Path,
        special_tokens_map: Mapping[str, Any] | None = None,
        *,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        split_chinese: bool = True,
        added: Mapping[int, tokenizers.AddedToken] | None = None,
    ) -> Tokenizer:
        """BERT's `vocab.txt`, a piece a line; `added` are tokens that were added later."""
        inner = read_word_pieces(Path(path), lowercase, strip_accents, split_chinese)
        return cls(add_tokens(inner, added or {}), None, special_tokens_map)

    @classmethod
    def load(
        cls,
        path: str | Path,
        roles: Mapping[str, str] | None = None,
        special_tokens_map: Mapping[str, Any] | None = None,
    ) -> Tokenizer:
        """Any `tokenizer.json`, trained here or elsewhere.

        `roles` says which token plays which role, as {"start": "<pad>"}; `special_tokens_map` is
        the content of Hugging Face's file of that name, or of its `tokenizer_config.json`. Roles
        that neither names are found in the file, then by known spellings among its specials.
        """
        if not Path(path).is_file():
            raise ValueError(
                f"path ({str(path)!r}) must be a tokenizer.json: there is no such file"
            )
        return cls.from_bytes(Path(path).read_bytes(), path, roles, special_tokens_map)

    @classmethod
    def from_bytes(
        cls,
        content: bytes,
        path: str | Path,
        roles: Mapping[str, str] | None = None,
        special_tokens_map: Mapping[str, Any] | None = None,
    ) -> Tokenizer:
        """The content of a `tokenizer.json`, and the path that errors call it by."""
        try:
            inner = _parse(content.decode("utf-8"))
        except ValueError as reason:
            raise ValueError(f"path ({str(path)!r}) is no tokenizer.json: {reason}") from None
        return _call_library(lambda: cls(inner, roles, special_tokens_map))

    @classmethod
    def from_json(
        cls,
        text: str,
        roles: Mapping[str, str] | None = None,
        special_tokens_map: Mapping[str, Any] | None = None,
    ) -> Tokenizer:
        """The content of a `tokenizer.json`; parts that a stranger could do harm with are
        refused."""
        return cls(_parse(text), roles, special_tokens_map)

    def id_of_role(self, role: str) -> int:
        """The id of the token that plays a role; an error says which roles are played."""
        check_roles([role])
        if role not in self.roles:
            names = zip(self.roles, self.tokens_of(list(self.roles.values())), strict=True)
            played = ", ".join(f"{name} ({token})" for name, token in names) or "none"
            raise ValueError(
                f"the tokenizer has no token with the role {role!r}; it has {played}; "
                f"text.roles ({role} = ...) or text.specials declares one"
            )
        return self.roles[role]

    @property
    def pad(self) -> int | None:
        """The id that fills up shorter texts, if there is one."""
        return self.roles.get("pad")

    @property
    def unknown(self) -> int | None:
        """The id that stands for what the vocabulary does not hold."""
        return self.roles.get("unknown")

    @property
    def start(self) -> int | None:
        """The id before a text's first token."""
        return self.roles.get("start")

    @property
    def end(self) -> int | None:
        """The id behind a text's last token."""
        return self.roles.get("end")

    @property
    def mask(self) -> int | None:
        """The id in place of a token to be guessed."""
        return self.roles.get("mask")

    @property
    def separator(self) -> int | None:
        """The id between two texts, and behind the second."""
        return self.roles.get("separator")

    @property
    def classifier(self) -> int | None:
        """The id whose vector stands for the whole text: the role is named class."""
        return self.roles.get("class")

    def save(self, path: str | Path) -> None:
        """Write `tokenizer.json` whole or not at all."""
        write_atomically(Path(path), self.to_json().encode())

    def to_json(self, marked: bool = False) -> str:
        """What `save` writes; `marked`, for others, one that puts [CLS] before a text and [SEP]
        behind it of itself, as BERT's do."""
        inner = self._inner
        if marked and not inner.encode("").ids:
            [first, last] = self.tokens_of([self.id_of_role(r) for r in ("class", "separator")])
            inner = tokenizers.Tokenizer.from_str(inner.to_str())
            inner.post_processor = processors.Sequence(
                [inner.post_processor, between_marks(inner, first, last)]
            )
        return inner.to_str(pretty=True)

    def encode(self, text: str) -> Encoded:
        """One text as ids."""
        [ids] = self._encode_batch([text])
        return Encoded(text, ids, self)

    def encode_all(self, texts: Iterable[str]) -> Iterator[Encoded]:
        """Many texts as ids, in their order, a batch of them in memory."""
        for batch in _split_batches(texts):
            for text, ids in zip(batch, self._encode_batch(batch), strict=True):
                yield Encoded(text, ids, self)

    def words_of(self, text: str) -> list[str]:
        """The words of a text as they are cut and folded, one for each id, whether the vocabulary
        holds them or not; for kind word."""
        if self.kind != "word":
            raise ValueError(f"kind ({self.kind!r}) must be word: others know pieces, and no words")
        return self.stretches_of(text)

    def stretches_of(self, text: str) -> list[str]:
        """The folded stretches of a text that no piece crosses: words, with the mark before them
        that pieces are to have; for kinds that cut a text before they look for pieces."""
        check_writable(text)
        fold, cut = self._inner.normalizer, self._inner.pre_tokenizer
        folded = text if fold is None else fold.normalize_str(text)
        return [stretch for stretch, _ in cut.pre_tokenize_str(folded)]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, specials left out; the unknown is shown, for it stands for something."""
        visible = [number for number in self._check_ids(ids) if number not in self._not_decoded]
        return self._inner.decode(visible, skip_special_tokens=False)

    def decode_stream(self, ids: Iterable[int], before: Sequence[int] = ()) -> Iterator[str]:
        """The text of ids that come one by one, after what was there before, in pieces.

        A character whose bytes are tokens of their own is held back until it is whole.
        """
        so_far = list(before)
        given = len(self.decode(so_far))  # characters of the text that were handed out
        for number in ids:
            so_far.append(number)
            text = self.decode(so_far).removesuffix(REPLACEMENT)
            if len(text) > given:
                yield text[given:]
                given = len(text)
        if rest := self.decode(so_far)[given:]:  # the bytes never became a character
            yield rest

    def tokens_of(self, ids: Sequence[int]) -> list[str]:
        """The vocabulary's names of ids."""
        return [self._tokens[number] for number in self._check_ids(ids)]

    def pieces_of(self, ids: Sequence[int]) -> list[str]:
        """Ids as people read them: the vocabulary's names, but of kind byte-bpe what they write, if
        that is something, and no half of a character."""
        tokens = self.tokens_of(ids)
        if self.kind != BYTEWISE:
            return tokens
        written = [self.decode([number]) for number in ids]
        return [
            text if text and REPLACEMENT not in text else token
            for text, token in zip(written, tokens, strict=True)
        ]

    def id_of(self, token: str) -> int | None:
        """The id of a token of the vocabulary, None for others."""
        return self._inner.token_to_id(token)

    def offsets_of(self, text: str) -> list[tuple[int, int]]:
        """Where the tokens of a text stand in it."""
        encoding = self._encoder.encode(text, add_special_tokens=False)
        if self.kind not in ("bpe", "unigram"):
            return encoding.offsets
        pairs = zip(encoding.tokens, encoding.offsets, strict=True)
        return [
            # The library gives a mark the place of the character it was put before.
            (start, start)
            if token == WORD_MARK and text[start:end].strip(_MARK_STANDS_FOR)
            else (start, end)
            for token, (start, end) in pairs
        ]

    def _check_ids(self, ids: Iterable[int]) -> list[int]:
        """The ids as integers; a ValueError for one that is not in the vocabulary."""
        numbers = [int(number) for number in ids]
        wrong = next((number for number in numbers if not 0 <= number < self.size), None)
        if wrong is not None:
            raise ValueError(f"ids: {wrong} is not in the vocabulary, 0 to {self.size - 1}")
        return numbers

    def _encode_batch(self, texts: list[str]) -> list[list[int]]:
        """The ids of some texts; a ValueError for one that cannot be encoded."""
        for text in texts:
            check_writable(text)
            if self._spellable is not None:
                self._spellable.check(text)
        if self._characters is not None:
            ids = self._characters
            unknown = -1 if self.unknown is None else self.unknown  # refused above, if it were -1
            return [[ids.get(character, unknown) for character in text] for text in texts]
        encodings = self._encoder.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]


def _parse(text: str) -> tokenizers.Tokenizer:
    """The library's tokenizer from a `tokenizer.json` that does no harm."""
    checked = refuse_harmful(text)
    return _call_library(lambda: tokenizers.Tokenizer.from_str(checked))


def _call_library(call: Callable[[], T]) -> T:
    """What the call gives; whatever the library raises, as a ValueError."""
    try:
        return call()
    except Exception as reason:  # the library raises nothing narrower
        raise ValueError(str(reason)) from None
    except BaseException as reason:
        if type(reason).__name__ != "PanicException":  # its own, which it has no module for
            raise
        raise ValueError(f"the library gives up on it: {reason}") from None


def _split_batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Texts a thousand at a time, fewer when they are long."""
    batch: list[str] = []
    characters = 0
    for text in texts:
        batch.append(text)
        characters += len(text)
        if len(batch) == _MAX_BATCH_TEXTS or characters >= _MAX_BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
