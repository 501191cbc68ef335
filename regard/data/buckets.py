"""Feeds of examples: those of like length together, about so many tokens at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import torch
from torch import Tensor

from regard.data.batches import LabelledTexts, Pairs, Words
from regard.data.feeds import random_stream


class LengthBuckets:
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
        self.buckets = LengthBuckets([len(sentence) + 1 for sentence in sentences], tokens, seed)

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
        links: Sequence[Sequence[tuple[int, int]]] = (),
    ):
        self.pairs, self.start, self.end, self.pad = pairs, start, end, pad
        self.references = references  # the targets as they were written, to compare answers with
        self.links = links  # which source word belongs to which target word, if the data know
        lengths = [max(len(source), len(target) + 1) for source, target in pairs]
        self.buckets = LengthBuckets(lengths, tokens, seed)

    def with_pairs(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Translations:
        """Other pairs, in batches made alike."""
        budget, seed = self.buckets.budget, self.buckets.seed
        return Translations(pairs, self.start, self.end, self.pad, budget, seed)

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


class PerEpochTranslations:
    """Pairs that are other ones in every epoch: `draw(epoch)` says which, always the same."""

    continues = False

    def __init__(self, draw: Callable[[int], Translations]):
        self.draw = lru_cache(maxsize=2)(draw)

    @property
    def summary(self) -> str:
        return self.draw(0).summary

    def batches(self, epoch: int) -> int:
        return self.draw(epoch).batches(epoch)

    def batch(self, epoch: int, index: int) -> Pairs:
        return self.draw(epoch).batch(epoch, index)


class LabelledTextsFeed:
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
        self.buckets = LengthBuckets([max(len(text), 1) for text in texts], tokens, seed)

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
    # One tensor of all at once: a tensor for each row would take longer than a model's layer.
    padded = [[*row, *[filler] * (longest - len(row))] for row in rows]
    ids = torch.tensor(padded, dtype=torch.long).view(len(rows), longest)
    lengths = torch.tensor([len(row) for row in rows])
    return ids, torch.arange(longest) < lengths.unsqueeze(-1)
