"""Texts between marks, [CLS] first [SEP] or [CLS] first [SEP] second [SEP], with labels."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.data.batches import MarkedTexts
from regard.data.buckets import LabelledTextsFeed, pad_rows


class MarkedTextsFeed(LabelledTextsFeed):
    """Texts between marks with the numbers of their classes, of like length together."""

    def collate(self, texts: Sequence[Sequence[int]], labels: Sequence[int]) -> MarkedTexts:
        ids, mask = pad_rows(texts, self.pad)
        numbers = torch.tensor(labels, dtype=torch.long)
        return MarkedTexts(ids, mask, numbers, segments=pad_segments(texts))


def pad_segments(texts: Sequence[Sequence[int]]) -> Tensor:
    """Which of two texts each position belongs to, (batch, longest): 0 up to the first separator,
    1 behind it. The separator is what a row ends with, and stands nowhere but between texts."""
    first = [list(ids).index(ids[-1]) + 1 if ids else 0 for ids in texts]
    rows = [[0] * end + [1] * (len(ids) - end) for ids, end in zip(texts, first, strict=True)]
    return pad_rows(rows, 0)[0]
