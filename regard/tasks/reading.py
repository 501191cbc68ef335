"""How a classifier reads a text: as one row of words, between marks, or sentence by sentence.

A model says which by the batch it takes: `reads = LabelledDocuments`. All that depends on it is
here, and the task asks no model for its name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from types import MappingProxyType
from typing import Any, TypeVar

import torch
from torch import nn

from regard.attention import Attended, Label, Look, Side, make_looks, sides_of
from regard.data.batches import (
    LabelledDocuments,
    LabelledSpellings,
    LabelledTexts,
    MarkedTexts,
)
from regard.data.buckets import LabelledTextsFeed, pad_rows
from regard.data.documents import DocumentIds, LabelledDocumentsFeed
from regard.data.feeds import Feed
from regard.data.marked import MarkedTextsFeed, pad_segments
from regard.data.spelled import LabelledSpellingsFeed, pad_spellings
from regard.tasks.labels import mark_second, text_side, token_labels
from regard.tasks.spelling import EmbedWords, spell_all
from regard.text import Tokenizer
from regard.text.sentences import split_sentences
from regard.text.spelling import Spelling, spell

T = TypeVar("T")
Seen = Mapping[str, Sequence[Attended]]
PAIR_MARK = "\t"
"""Stands between two texts that are read together."""
MAX_SENTENCE_WORDS = 100
"""A sentence that is longer goes on as the next one: some texts have no full stop at all."""


class Reading(ABC):
    """From texts to batches. What is read of one text is its ids, in the shape of the batch."""

    roles: tuple[str, ...] = ("pad", "unknown")
    """The special tokens it cannot do without, by what they are for."""
    verbs: Mapping[str, Any] = MappingProxyType({})
    """What a model that reads so can be asked for beside labels, as `Task.verbs` has it."""

    @abstractmethod
    def pieces(self, text: str) -> Iterable[str]:
        """What of a text goes to the tokenizer."""

    def join_pair(self, text: str, second: str) -> str:
        """Two texts as one that is read, if this model reads two."""
        raise ValueError(f"target ({second!r}): this classifier reads one text")

    @abstractmethod
    def read_all(self, texts: Iterable[str], words: Tokenizer) -> Iterator[Any]:
        """The ids of each text; `len` says how many words there are."""

    def read(self, text: str, words: Tokenizer) -> Any:
        """The ids of one text."""
        [ids] = self.read_all([text], words)
        return ids

    @abstractmethod
    def feed(
        self, texts: Iterable[Any], labels: Sequence[int], tokens: int, seed: int | None, pad: int
    ) -> Feed[LabelledTexts]:
        """Batches of texts that were read."""

    @abstractmethod
    def collate(self, texts: Sequence[Any], pad: int) -> LabelledTexts:
        """Texts as a batch whose labels nobody knows."""

    @abstractmethod
    def group(self, ids: list[int]) -> Any:
        """Ids as if they had been read out of a text."""

    def observe(self, model: nn.Module) -> dict[str, float]:
        """What is worth telling about a model that reads so, beside its metrics."""
        return {}

    @abstractmethod
    def make_looks(
        self, model: nn.Module, seen: Seen, text: str, words: Tokenizer, answer: Label
    ) -> list[Look]:
        """What was watched while the model read this text alone and gave this answer."""


class WholeTexts(Reading):
    """A text is one row of words: (batch, position)."""

    batches: type[LabelledTextsFeed] = LabelledTextsFeed

    def pieces(self, text: str) -> list[str]:
        return [text]

    def read_all(self, texts: Iterable[str], words: Tokenizer) -> Iterator[list[int]]:
        return (encoded.ids for encoded in words.encode_all(texts))

    def feed(
        self,
        texts: Iterable[list[int]],
        labels: Sequence[int],
        tokens: int,
        seed: int | None,
        pad: int,
    ) -> LabelledTextsFeed:
        return self.batches(list(texts), labels, tokens, seed, pad)

    def collate(self, texts: Sequence[list[int]], pad: int) -> LabelledTexts:
        return LabelledTexts(*pad_rows(texts, pad), *_no_labels(len(texts)))

    def group(self, ids: list[int]) -> list[int]:
        return ids

    def make_looks(
        self, model: nn.Module, seen: Seen, text: str, words: Tokenizer, answer: Label
    ) -> list[Look]:
        sides = {"words": text_side(words.encode(text)), "class": Side([answer])}
        return make_looks(model, seen, sides)


class Marked(WholeTexts):
    """A text is one row between marks, [CLS] text [SEP]; with a tab in it, it is two: [CLS] first
    [SEP] second [SEP]. One without words has no marks either."""

    roles = ("pad", "unknown", "class", "separator")
    batches = MarkedTextsFeed

    def pieces(self, text: str) -> list[str]:
        return text.split(PAIR_MARK, 1)

    def join_pair(self, text: str, second: str) -> str:
        return f"{text.replace(PAIR_MARK, ' ')}{PAIR_MARK}{second}"

    def read_all(self, texts: Iterable[str], words: Tokenizer) -> Iterator[list[int]]:
        first, last = words.id_of_role("class"), words.id_of_role("separator")
        for parts in encode_parts(map(self.pieces, texts), words):
            marked = [first, *(id for ids in parts for id in (*ids, last))]
            yield marked if any(parts) else []

    def collate(self, texts: Sequence[list[int]], pad: int) -> MarkedTexts:
        padded, unlabelled = pad_rows(texts, pad), _no_labels(len(texts))
        return MarkedTexts(*padded, *unlabelled, pad_segments(texts))

    def make_looks(
        self, model: nn.Module, seen: Seen, text: str, words: Tokenizer, answer: Label
    ) -> list[Look]:
        marks = [words.id_of_role("class"), words.id_of_role("separator")]
        first, last = map(Label, words.tokens_of(marks))
        labels, begin = [first], 0
        for number, part in enumerate(self.pieces(text)):
            found = token_labels(words.encode(part), begin)
            labels += [mark_second(label) if number else label for label in found]
            labels.append(last)
            begin += len(part) + len(PAIR_MARK)
        return make_looks(model, seen, {"words": Side(labels, text), "class": Side([answer])})


@dataclass(frozen=True)
class Document:
    """The ids of a text, sentence by sentence."""

    sentences: list[list[int]]

    def __len__(self) -> int:
        return sum(map(len, self.sentences))


class Documents(Reading):
    """A text is its sentences, and each a row of words: (batch, sentence, word)."""

    def pieces(self, text: str) -> list[str]:
        return [text[begin:end] for begin, end in split_sentences(text)]

    def read_all(self, texts: Iterable[str], words: Tokenizer) -> Iterator[Document]:
        for sentences in encode_parts(map(self.pieces, texts), words):
            yield Document([part for sentence in sentences for part in cut_sentence(sentence)])

    def feed(
        self,
        texts: Iterable[Document],
        labels: Sequence[int],
        tokens: int,
        seed: int | None,
        pad: int,
    ) -> LabelledDocumentsFeed:
        return LabelledDocumentsFeed((t.sentences for t in texts), labels, tokens, seed, pad)

    def collate(self, texts: Sequence[Document], pad: int) -> LabelledDocuments:
        ids, mask = DocumentIds(t.sentences for t in texts).cube(range(len(texts)), pad)
        return LabelledDocuments(ids, mask, *_no_labels(len(texts)))

    def group(self, ids: list[int]) -> Document:
        return Document([ids[at : at + 5] for at in range(0, len(ids), 5)])

    def make_looks(
        self, model: nn.Module, seen: Seen, text: str, words: Tokenizer, answer: Label
    ) -> list[Look]:
        """The looks at a document, each with those at its sentences inside it."""
        sentences = self._label(text, words)
        whole = [Label(text[s[0].start : s[-1].end], s[0].start, s[-1].end) for s in sentences]
        sides = {"document": Side([answer]), "sentences": Side(whole, text)}
        declared = sides_of(model)
        inner_paths = [path for path in seen if declared[path] == ("sentence", "words")]
        inner = [
            _look_at_words(path, seen[path], row, Label(whole[row].text), labels, text)
            for path in inner_paths
            for row, labels in enumerate(sentences)
        ]
        others = {path: calls for path, calls in seen.items() if path not in inner_paths}
        return [replace(look, inner=tuple(inner)) for look in make_looks(model, others, sides)]

    def _label(self, text: str, words: Tokenizer) -> list[list[Label]]:
        """The words of each sentence, with their places in the text."""
        sentences = []
        for begin, end in split_sentences(text):
            labels = token_labels(words.encode(text[begin:end]), begin)
            sentences += cut_sentence(labels)
        return sentences


class Spelled(Reading):
    """A text is its words as they are spelled: (batch, position, character).

    What its model makes of a word are several layers, and what it shows is how it mixes them.
    """

    verbs: Mapping[str, Any] = MappingProxyType({"embed": EmbedWords})

    def pieces(self, text: str) -> list[str]:
        return [text]

    def read_all(self, texts: Iterable[str], words: Tokenizer) -> Iterator[list[Spelling]]:
        return spell_all(texts, words)

    def feed(
        self,
        texts: Iterable[list[Spelling]],
        labels: Sequence[int],
        tokens: int,
        seed: int | None,
        pad: int,
    ) -> LabelledSpellingsFeed:
        return LabelledSpellingsFeed(list(texts), labels, tokens, seed)

    def collate(self, texts: Sequence[list[Spelling]], pad: int) -> LabelledSpellings:
        return LabelledSpellings(*pad_spellings(texts), *_no_labels(len(texts)))

    def group(self, ids: list[int]) -> list[Spelling]:
        return [spell(str(number)) for number in ids]

    def observe(self, model: Any) -> dict[str, float]:
        """`mix_0` and so on: the share of each layer in the mix, the words' own first."""
        return {f"mix_{layer}": share for layer, share in enumerate(model.mix.weights.tolist())}

    def make_looks(
        self, model: Any, seen: Seen, text: str, words: Tokenizer, answer: Label
    ) -> list[Look]:
        """The mix, which is the same for every text: one row over the layers."""
        layers = [Label("words")] + [Label(f"layer {n + 1}") for n in range(model.config.layers)]
        weights = model.mix.weights.unsqueeze(0)  # (1, layer)
        mix = Look.of_weights(weights, queries=[answer], keys=layers, path="mix", kind="pool")
        return [mix]


def encode_parts(texts: Iterable[list[str]], words: Tokenizer) -> Iterator[list[list[int]]]:
    """The ids of each part of each text."""
    # All parts of some texts go to the tokenizer together, which is several times as fast.
    remaining = iter(texts)
    while some := list(islice(remaining, 1000)):
        encoded = words.encode_all(part for parts in some for part in parts)
        for parts in some:
            yield [each.ids for each in islice(encoded, len(parts))]


def cut_sentence(words: list[T]) -> list[list[T]]:
    """A sentence in parts of equal length, none above the longest there may be; none if empty."""
    parts = -(-len(words) // MAX_SENTENCE_WORDS)
    cuts = [len(words) * part // parts for part in range(parts + 1)] if parts else []
    return [words[begin:end] for begin, end in pairwise(cuts)]


def _look_at_words(
    path: str, calls: Sequence[Attended], row: int, query: Label, keys: list[Label], text: str
) -> Look:
    """The words of one sentence, which is a row of the batch; its padding is left out."""
    [attended] = calls
    weights = attended.pick(row).weights[0, :, : len(keys)]  # (1, word)
    return Look.of_weights(
        weights, queries=[query], keys=keys, path=path, kind="pool", key_text=text
    )


READINGS: dict[type[LabelledTexts], Reading] = {
    LabelledTexts: WholeTexts(),
    MarkedTexts: Marked(),
    LabelledDocuments: Documents(),
    LabelledSpellings: Spelled(),
}


def _no_labels(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    unknown = torch.zeros(count, dtype=torch.long)
    return unknown, torch.zeros_like(unknown, dtype=torch.bool)
