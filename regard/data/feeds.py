"""Batches in an order that is a pure function of (seed, epoch, index).

A feed can be asked for any batch of any epoch, so the whole state of a data pipeline is two
numbers, and a run that is resumed, or read by more workers, sees what it would have seen anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from regard.data.batches import Batch, LabelledTexts, Pairs, Words

B = TypeVar("B", bound=Batch, covariant=True)


class Feed(Protocol[B]):
    """Where batches come from."""

    continues: bool
    """Whether row r of a batch goes on where row r of the batch before ended."""

    def batches(self, epoch: int) -> int:
        """How many batches this epoch has."""

    def batch(self, epoch: int, index: int) -> B:
        """One of them, always the same."""

    @property
    def summary(self) -> str:
        """How much there is, for people: "20,000 pairs"."""


def random_stream(seed: int, *places: int) -> torch.Generator:
    """A generator of its own for each place, whatever was drawn elsewhere."""
    mixed = 0
    for place in (seed, *places):
        # The mixing step of splitmix64: neighbouring places get streams that have nothing in
        # common.
        mixed = (mixed + place + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        mixed ^= mixed >> 31
    return torch.Generator().manual_seed(mixed & 0x7FFFFFFFFFFFFFFF)


class Columns:
    """A text laid in `batch` columns side by side, read `length` words at a time.

    Row r of one batch goes on where row r of the batch before ended, as truncated backpropagation
    through time wants it. Every word of the text but the first is a target exactly once.
    """

    continues = True

    def __init__(self, stream: Tensor, batch: int, length: int):
        if stream.numel() < 2:
            raise ValueError(f"the text has {stream.numel()} tokens; there is nothing to predict")
        targets = stream.numel() - 1
        batch = min(batch, targets)
        self.length = length
        self.column = -(-targets // batch)  # words in a column, the last ones perhaps filled up
        self.inputs = _columns(stream[:-1], batch, self.column)  # (batch, word)
        self.targets = _columns(stream[1:], batch, self.column)
        self.mask = (torch.arange(batch * self.column) < targets).view(batch, self.column)

    @property
    def summary(self) -> str:
        return f"{int(self.mask.sum()):,} tokens in {len(self.inputs)} columns"

    def words(self) -> Tensor:
        """Every target in the order of the text, (word,)."""
        return self.targets.flatten()[self.mask.flatten()]

    def batches(self, epoch: int) -> int:
        return -(-self.column // self.length)

    def batch(self, epoch: int, index: int) -> Words:
        part = slice(index * self.length, (index + 1) * self.length)
        inputs, targets = (each[:, part].long() for each in (self.inputs, self.targets))
        return Words(inputs, targets, self.mask[:, part])


class Windows:
    """Windows of `length` words from anywhere in the text."""

    continues = False

    def __init__(self, stream: Tensor, batch: int, length: int, seed: int):
        if stream.numel() <= length:
            raise ValueError(f"the text has {stream.numel()} tokens, a window needs {length + 1}")
        self.stream, self.rows, self.length, self.seed = stream, batch, length, seed

    @property
    def summary(self) -> str:
        return f"{self.stream.numel():,} tokens in windows of {self.length}"

    def batches(self, epoch: int) -> int:
        return max(1, self.stream.numel() // (self.rows * self.length))

    def batch(self, epoch: int, index: int) -> Words:
        generator = random_stream(self.seed, epoch, index)
        last = self.stream.numel() - self.length
        starts = torch.randint(last, (self.rows, 1), generator=generator)
        places = starts + torch.arange(self.length + 1)  # (batch, length + 1)
        words = self.stream[places].long()
        return Words(words[:, :-1], words[:, 1:], torch.ones_like(words[:, 1:], dtype=torch.bool))


class Packed:
    """Sentences laid end to end in rows of `length`, none of which sees into its neighbour."""

    continues = False

    def __init__(self, sentences: Sequence[Sequence[int]], batch: int, length: int, seed: int):
        self.sentences, self.rows, self.length, self.seed = sentences, batch, length, seed
        total = sum(len(sentence) for sentence in sentences)
        if total < 2:
            raise ValueError(f"the text has {total} tokens; there is nothing to predict")
        self.row_count = -(-total // (length + 1))

    @property
    def summary(self) -> str:
        return f"{len(self.sentences):,} sentences in rows of {self.length}"

    def batches(self, epoch: int) -> int:
        return -(-self.row_count // self.rows)

    @lru_cache(maxsize=2)  # noqa: B019  (one feed lives as long as its run)
    def _packed_rows(self, epoch: int) -> tuple[Tensor, Tensor]:
        order = torch.randperm(len(self.sentences), generator=random_stream(self.seed, epoch))
        words = [word for place in order.tolist() for word in self.sentences[place]]
        owners = [place for place in order.tolist() for _ in self.sentences[place]]
        room = self.row_count * (self.length + 1) - len(words)
        shape = (self.row_count, self.length + 1)
        words += [words[0]] * room
        return torch.tensor(words).view(shape), torch.tensor(owners + [-1] * room).view(shape)

    def batch(self, epoch: int, index: int) -> Words:
        words, owners = self._packed_rows(epoch)
        part = slice(index * self.rows, (index + 1) * self.rows)
        row, owner = words[part], owners[part]
        # A word is predicted from its own sentence only: where a new one begins, nothing is asked.
        same = (owner[:, :-1] == owner[:, 1:]) & (owner[:, 1:] >= 0)
        return Words(row[:, :-1], row[:, 1:], owner[:, :-1] >= 0, owner[:, :-1], same)


class PackedInOrder:
    """Sentences in rows of up to `length`, in their order, every word but a sentence's first a
    target exactly once: `Packed` for a text that is scored.

    A sentence stands in one row, whole, beside others that it does not see. One that is longer than
    a row is cut into pieces of `length` targets, and the words of a piece see that piece alone.
    """

    continues = False

    def __init__(self, sentences: Sequence[Sequence[int]], batch: int, length: int):
        self.rows = pack(sentences, length)
        if not self.rows:
            raise ValueError(
                "the text has no two tokens in a sentence; there is nothing to predict"
            )
        self.batch_size = batch

    @property
    def summary(self) -> str:
        return f"{sum(map(len, self.rows)):,} sentences in {len(self.rows):,} rows"

    def batches(self, epoch: int) -> int:
        return -(-len(self.rows) // self.batch_size)

    def batch(self, epoch: int, index: int) -> Words:
        rows = self.rows[index * self.batch_size : (index + 1) * self.batch_size]
        inputs, mask = pad_rows([[w for piece in row for w in piece[:-1]] for row in rows], 0)
        targets, _ = pad_rows([[w for piece in row for w in piece[1:]] for row in rows], 0)
        owners = [[n for n, piece in enumerate(row) for _ in piece[1:]] for row in rows]
        documents, _ = pad_rows(owners, -1)
        return Words(inputs, targets, mask, documents)


def pack(sentences: Iterable[Sequence[int]], length: int) -> list[list[Sequence[int]]]:
    """Sentences, and pieces of those with more than `length` targets, side by side in rows.

    A piece begins with the last word of the piece before, which it is predicted from."""
    rows: list[list[Sequence[int]]] = []
    room = 0
    for sentence in sentences:
        for first in range(0, len(sentence) - 1, length):
            piece = sentence[first : first + length + 1]
            if len(piece) - 1 > room:
                rows.append([])
                room = length
            rows[-1].append(piece)
            room -= len(piece) - 1
    return rows


class Bucketed:
    """Examples of like length together, about `tokens` words at once, shuffled every epoch.

    Sorting by length saves the padding; shuffling before sorting and the batches after it keeps
    the order random.
    """

    def __init__(self, lengths: Sequence[int], tokens: int, seed: int | None):
        if not lengths:
            raise ValueError("there are no examples")
        self.lengths, self.budget, self.seed = torch.tensor(lengths), tokens, seed

    def batches(self, epoch: int) -> int:
        return len(self.plan(epoch))

    @lru_cache(maxsize=2)  # noqa: B019
    def plan(self, epoch: int) -> tuple[tuple[int, ...], ...]:
        """Which examples stand in which batch. Without a seed, in order of length."""
        order = torch.arange(len(self.lengths))
        if self.seed is not None:
            order = torch.randperm(len(self.lengths), generator=random_stream(self.seed, epoch))
        order = order[self.lengths[order].argsort(stable=True)]
        batches: list[tuple[int, ...]] = []
        current: list[int] = []
        for place in order.tolist():
            # Sorted, so the newcomer is the longest and says how wide the batch becomes.
            if current and (len(current) + 1) * int(self.lengths[place]) > self.budget:
                batches.append(tuple(current))
                current = []
            current.append(place)
        batches.append(tuple(current))
        if self.seed is not None:
            turn = torch.randperm(len(batches), generator=random_stream(self.seed, epoch, 1))
            batches = [batches[i] for i in turn.tolist()]
        return tuple(batches)


class Sentences:
    """Sentences for a language model, each ended by </s> and begun after one."""

    continues = False

    def __init__(
        self, sentences: Sequence[Sequence[int]], end: int, tokens: int, seed: int | None = None
    ):
        self.sentences, self.end = sentences, end
        self.buckets = Bucketed([len(sentence) + 1 for sentence in sentences], tokens, seed)

    @property
    def summary(self) -> str:
        return f"{len(self.sentences):,} sentences"

    def batches(self, epoch: int) -> int:
        return self.buckets.batches(epoch)

    def batch(self, epoch: int, index: int) -> Words:
        chosen = [list(self.sentences[i]) for i in self.buckets.plan(epoch)[index]]
        inputs, mask = pad_rows([[self.end, *ids] for ids in chosen], self.end)
        targets, _ = pad_rows([[*ids, self.end] for ids in chosen], self.end)
        return Words(inputs, targets, mask)


class Translations:
    """Pairs of sentences, of like length together."""

    continues = False

    def __init__(
        self,
        pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
        start: int,
        end: int,
        pad: int,
        tokens: int,
        seed: int | None = None,
        references: Sequence[str] = (),
    ):
        self.pairs, self.start, self.end, self.pad = pairs, start, end, pad
        self.references = references  # the targets as they were written, to compare answers with
        lengths = [max(len(source), len(target) + 1) for source, target in pairs]
        self.buckets = Bucketed(lengths, tokens, seed)

    @property
    def summary(self) -> str:
        return f"{len(self.pairs):,} pairs"

    def batches(self, epoch: int) -> int:
        return self.buckets.batches(epoch)

    def batch(self, epoch: int, index: int) -> Pairs:
        return self.collate([self.pairs[i] for i in self.buckets.plan(epoch)[index]])

    def collate(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Pairs:
        """These pairs as one batch."""
        source, source_mask = pad_rows([list(s) for s, _ in pairs], self.pad)
        target_input, mask = pad_rows([[self.start, *t] for _, t in pairs], self.pad)
        target_output, _ = pad_rows([[*t, self.end] for _, t in pairs], self.pad)
        return Pairs(source, source_mask, target_input, target_output, mask)


class Labelled:
    """Texts with the numbers of their classes, of like length together."""

    continues = False

    def __init__(
        self,
        texts: Sequence[Sequence[int]],
        labels: Sequence[int],
        tokens: int,
        seed: int | None = None,
        pad: int = 0,
    ):
        self.texts, self.labels, self.pad = texts, labels, pad
        self.buckets = Bucketed([max(len(text), 1) for text in texts], tokens, seed)

    @property
    def summary(self) -> str:
        return f"{len(self.texts):,} texts of {len(set(self.labels))} classes"

    def batches(self, epoch: int) -> int:
        return self.buckets.batches(epoch)

    def batch(self, epoch: int, index: int) -> LabelledTexts:
        rows = self.buckets.plan(epoch)[index]
        return self.collate([self.texts[i] for i in rows], [self.labels[i] for i in rows])

    def collate(self, texts: Sequence[Sequence[int]], labels: Sequence[int]) -> LabelledTexts:
        """These texts as one batch."""
        ids, mask = pad_rows(texts, self.pad)
        return LabelledTexts(ids, mask, torch.tensor(labels, dtype=torch.long))


def pad_rows(rows: Sequence[Sequence[int]], filler: int) -> tuple[Tensor, Tensor]:
    """(batch, longest) ids filled up on the right, and True where they are real."""
    longest = max((len(row) for row in rows), default=0)
    ids = torch.full((len(rows), longest), filler)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = torch.tensor(row, dtype=torch.long)
    lengths = torch.tensor([len(row) for row in rows])
    return ids, torch.arange(longest) < lengths.unsqueeze(-1)


def _columns(words: Tensor, batch: int, column: int) -> Tensor:
    filled = words.new_zeros(batch * column)
    filled[: words.numel()] = words
    return filled.view(batch, column)
