"""Feeds of running text: columns, windows, and sentences packed into rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import torch
from torch import Tensor

from regard.data.batches import Words
from regard.data.buckets import pad_rows
from regard.data.feeds import random_stream


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


def _columns(words: Tensor, batch: int, column: int) -> Tensor:
    filled = words.new_zeros(batch * column)
    filled[: words.numel()] = words
    return filled.view(batch, column)
