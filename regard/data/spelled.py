"""Feeds of words as they are spelled, for models that read characters."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.data.batches import LabelledSpellings, Spellings
from regard.data.buckets import LengthBuckets, pad_rows
from regard.text.spelling import END_SPELLING, SPELLING_LENGTH, START_SPELLING, Spelling


class SpelledSentences:
    """Sentences for a language model that reads both ways, of like length together."""

    continues = False

    def __init__(
        self,
        sentences: Sequence[Sequence[Spelling]],
        ids: Sequence[Sequence[int]],
        start: int,
        end: int,
        tokens: int,
        seed: int | None = None,
    ):
        self.sentences, self.ids, self.start, self.end = sentences, ids, start, end
        self.buckets = LengthBuckets([len(sentence) + 2 for sentence in sentences], tokens, seed)

    @property
    def summary(self) -> str:
        return f"{len(self.sentences):,} sentences"

    def batches(self, epoch: int) -> int:
        return self.buckets.batches(epoch)

    def batch(self, epoch: int, index: int) -> Spellings:
        rows = self.buckets.plan(epoch)[index]
        characters, mask = pad_spellings([self.sentences[i] for i in rows])
        targets, _ = pad_rows([[self.start, *self.ids[i], self.end] for i in rows], self.end)
        return Spellings(characters, targets, mask)


class LabelledSpellingsFeed:
    """Texts with the numbers of their classes, each word as it is spelled."""

    continues = False

    def __init__(
        self,
        texts: Sequence[Sequence[Spelling]],
        labels: Sequence[int],
        tokens: int,
        seed: int | None = None,
    ):
        self.texts, self.labels = texts, labels
        self.buckets = LengthBuckets([len(text) + 2 for text in texts], tokens, seed)

    @property
    def summary(self) -> str:
        return f"{len(self.texts):,} texts of {len(set(self.labels))} classes"

    def batches(self, epoch: int) -> int:
        return self.buckets.batches(epoch)

    def batch(self, epoch: int, index: int) -> LabelledSpellings:
        rows = self.buckets.plan(epoch)[index]
        labels = torch.tensor([self.labels[i] for i in rows], dtype=torch.long)
        return LabelledSpellings(*pad_spellings([self.texts[i] for i in rows]), labels)


def pad_spellings(texts: Sequence[Sequence[Spelling]]) -> tuple[Tensor, Tensor]:
    """(batch, position, character), each text between its start and end, and True where a position
    is real; zeros fill up on the right."""
    lengths = torch.tensor([len(text) + 2 for text in texts])
    longest = int(lengths.max()) if len(texts) else 2
    characters = torch.zeros(len(texts), longest, SPELLING_LENGTH, dtype=torch.long)
    for row, text in enumerate(texts):
        whole = [START_SPELLING, *text, END_SPELLING]
        characters[row, : len(whole)] = torch.tensor(whole)
    return characters, torch.arange(longest) < lengths.unsqueeze(-1)
