"""Documents of sentences: kept as one row of ids, handed out as batches (document, sentence, word).

As lists of lists, the numbers of a corpus take ten times the memory, and to pad them one by one
takes longer than a small model needs to read them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from regard.data.batches import LabelledDocuments
from regard.data.buckets import LengthBuckets

Document = Sequence[Sequence[int]]  # the ids of each sentence


class DocumentIds:
    """The ids of many documents, one after the other."""

    def __init__(self, documents: Iterable[Document]):
        ids, words, sentences = array("q"), array("q"), array("q")
        for document in documents:
            sentences.append(len(document))
            for sentence in document:
                words.append(len(sentence))
                ids.extend(sentence)
        self.ids = _tensor(ids).int()  # (word of all documents,)
        self.words = _tensor(words)  # (sentence of all documents,), how many words each has
        self.sentences = _tensor(sentences)  # (document,), how many sentences each has
        self.first_word = self.words.cumsum(0) - self.words
        self.first_sentence = self.sentences.cumsum(0) - self.sentences

    def __len__(self) -> int:
        return len(self.sentences)

    def lengths(self) -> list[int]:
        """How many words each document has."""
        ends = torch.cat([torch.zeros(1, dtype=torch.long), self.words.cumsum(0)])
        first = self.first_sentence
        return (ends[first + self.sentences] - ends[first]).tolist()

    def cube(self, documents: Sequence[int], filler: int) -> tuple[Tensor, Tensor]:
        """(document, sentence, word) ids filled up with the filler, and True where one is real."""
        chosen = torch.tensor(documents, dtype=torch.long)
        counts = self.sentences[chosen]
        place = torch.arange(int(counts.max()) if len(counts) else 0)
        real = place < counts.unsqueeze(-1)  # (document, sentence)
        sentences = (self.first_sentence[chosen].unsqueeze(-1) + place)[real]  # (real sentence,)
        words = self.words[sentences]
        at = torch.arange(int(words.max()) if len(words) else 0)
        is_word = at < words.unsqueeze(-1)  # (real sentence, word)
        mask = torch.zeros(*real.shape, len(at), dtype=torch.bool)
        mask[real] = is_word
        ids = torch.full(mask.shape, filler)
        source = (self.first_word[sentences].unsqueeze(-1) + at)[is_word]
        ids[mask] = self.ids[source].long()
        return ids, mask


class LabelledDocumentsFeed:
    """Documents with the numbers of their classes, those of like length together."""

    continues = False

    def __init__(
        self,
        documents: Iterable[Document],
        labels: Sequence[int],
        tokens: int,
        seed: int | None = None,
        pad: int = 0,
    ):
        self.documents, self.labels, self.pad = DocumentIds(documents), torch.tensor(labels), pad
        lengths = [max(length, 1) for length in self.documents.lengths()]
        self.buckets = LengthBuckets(lengths, tokens, seed)

    @property
    def summary(self) -> str:
        classes = len(self.labels.unique())
        return f"{len(self.documents):,} documents of {classes} classes"

    def batches(self, epoch: int) -> int:
        return self.buckets.batches(epoch)

    def batch(self, epoch: int, index: int) -> LabelledDocuments:
        rows = self.buckets.plan(epoch)[index]
        ids, mask = self.documents.cube(rows, self.pad)
        return LabelledDocuments(ids, mask, self.labels[torch.tensor(rows)])


def _tensor(numbers: array[int]) -> Tensor:
    return torch.frombuffer(numbers, dtype=torch.long) if numbers else torch.zeros(0).long()
