"""Pairs of texts with hidden words, made anew every epoch: what BERT learns from.

documents → [CLS] A [SEP] B [SEP]   sentences of one document, up to half the room each
half of the pairs                   keep the B that follows their A
the other half                      trade their Bs among documents, so that no B tells by itself
15 % of the words                   are to be guessed: 80 % hidden, 10 % another word, 10 % as is

All of it follows from the seed, the epoch and the place of a batch alone.

Devlin et al. (2019), section 3.1 and appendix A.1; words hidden anew every epoch: Liu et al.
(2019), section 4.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from regard.data.batches import MaskedTexts
from regard.data.buckets import LengthBuckets, pad_rows
from regard.data.feeds import random_stream

SCORING_SEED = 0
"""Where nothing is to be learned, every run is asked for the same words of the same pairs."""
MIN_FILLED_SHARE = 2 / 3  # of its room, before a text ends with a sentence
MAX_SKIPPED = 4  # sentences at the beginning of a document, so that each epoch cuts it elsewhere

Sentence = Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Marks:
    """The ids that stand for no word."""

    pad: int
    first: int  # [CLS]
    separator: int  # [SEP]
    hidden: int  # [MASK]


@dataclass(frozen=True, kw_only=True)
class Hiding:
    """How many words are to be guessed, and what is read in their place."""

    share: float = 0.15
    hidden: float = 0.8  # of these, the share that is hidden
    another: float = 0.1  # and the share that is another word; the rest is left as it is

    def __post_init__(self) -> None:
        for name in ("share", "hidden", "another"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} ({getattr(self, name)}) must be from 0 to 1")
        if self.hidden + self.another > 1:
            raise ValueError(
                f"hidden ({self.hidden}) and another ({self.another}) must be at most 1 together"
            )


class Pair(NamedTuple):
    """Two stretches of text, and the document of the first."""

    first: list[int]
    second: list[int]
    document: int


class MaskedPairs:
    """Two texts a row, `length` tokens at the most; those of like length together."""

    continues = False

    def __init__(
        self,
        documents: Sequence[Sequence[Sentence]],
        marks: Marks,
        words: Tensor,
        *,
        length: int,
        tokens: int,
        seed: int | None = None,
        hiding: Hiding | None = None,
        paired: bool = True,
    ):
        """words (word,) are the ids that may be hidden and guessed; without `paired` each row is
        one text, and nothing is asked about a second."""
        if length < 5:
            raise ValueError(f"length ({length}) must be 5 or more: two words and three marks")
        self.documents, self.marks, self.words = documents, marks, words
        self.length, self.budget, self.paired = length, tokens, paired
        self.shuffled, self.seed = seed is not None, SCORING_SEED if seed is None else seed
        self.hiding = hiding or Hiding()
        self.is_word = torch.zeros(int(words.max()) + 1, dtype=torch.bool)
        self.is_word[words] = True

    @property
    def summary(self) -> str:
        sentences = sum(map(len, self.documents))
        return f"{sentences:,} sentences of {len(self.documents):,} documents"

    def batches(self, epoch: int) -> int:
        return len(self._plan(epoch)[1])

    def batch(self, epoch: int, index: int) -> MaskedTexts:
        rows, plan = self._plan(epoch)
        chosen = [rows[place] for place in plan[index]]
        ids, mask = pad_rows(
            [self.enclose(first, second) for first, second, _ in chosen], self.marks.pad
        )
        ends = torch.tensor([len(first) + 2 for first, _, _ in chosen]).unsqueeze(1)
        segments = ((torch.arange(ids.shape[1]) >= ends) & mask).long()
        seen, asked = self.hide(ids, mask, random_stream(self.seed, epoch, 2, index))
        unrelated = torch.tensor([label for _, _, label in chosen])
        pairs = torch.full((len(chosen),), self.paired)
        return MaskedTexts(seen, mask, segments, ids, asked, unrelated, pairs)

    def enclose(self, first: Sequence[int], second: Sequence[int]) -> list[int]:
        """[CLS] first [SEP] second [SEP], or [CLS] first [SEP]."""
        row = [self.marks.first, *first, self.marks.separator]
        return [*row, *second, self.marks.separator] if self.paired else row

    def hide(self, ids: Tensor, mask: Tensor, draws: torch.Generator) -> tuple[Tensor, Tensor]:
        """What is read in place of the ids, and True where a word is to be guessed.

        Of each row the share of its words, one at the least: never a mark, never padding.
        """
        known = ids.clamp(max=len(self.is_word) - 1)
        words = mask & self.is_word[known] & (known == ids)  # (batch, position)
        counts = words.sum(dim=1, keepdim=True)
        # Rounded up or down by chance, so that the share is right in the mean.
        wanted = counts * self.hiding.share + torch.rand(counts.shape, generator=draws)
        wanted = wanted.floor().clamp(min=1).minimum(counts)
        order = torch.rand(ids.shape, generator=draws).masked_fill(~words, 2.0)
        asked = (order.argsort(dim=1).argsort(dim=1) < wanted) & words
        fate = torch.rand(ids.shape, generator=draws)
        other = self.words[torch.randint(len(self.words), ids.shape, generator=draws)]
        seen = torch.where(asked & (fate < self.hiding.hidden), self.marks.hidden, ids)
        replaced = asked & (fate >= self.hiding.hidden)
        replaced &= fate < self.hiding.hidden + self.hiding.another
        return torch.where(replaced, other, seen), asked

    @lru_cache(maxsize=2)  # noqa: B019
    def _plan(
        self, epoch: int
    ) -> tuple[list[tuple[list[int], list[int], int]], tuple[tuple[int, ...], ...]]:
        """The rows of an epoch, (first, second, 1 if it does not follow), and its batches."""
        pairs = list(self._pairs(epoch))
        if not pairs:
            raise ValueError(
                "there are no pairs: every document needs two sentences at the least"
                if self.paired
                else "there are no sentences"
            )
        sources = self._choose_second_texts(pairs, epoch)
        rows = [
            (pair.first, pairs[source].second, int(source != place))
            for place, (pair, source) in enumerate(zip(pairs, sources, strict=True))
        ]
        lengths = [len(first) + len(second) + 3 for first, second, _ in rows]
        seed = self.seed if self.shuffled else None
        return rows, LengthBuckets(lengths, self.budget, seed).plan(epoch)

    def _pairs(self, epoch: int) -> Iterator[Pair]:
        """Stretches of whole sentences and those right behind them, document by document."""
        skips = torch.randint(
            MAX_SKIPPED, (len(self.documents),), generator=random_stream(self.seed, epoch, 3)
        ).tolist()
        room = (self.length - 3) // 2 if self.paired else self.length - 2
        for number, (document, skip) in enumerate(zip(self.documents, skips, strict=True)):
            # Of a short document nothing is left out.
            place = skip if len(document) > 2 * MAX_SKIPPED else 0
            while place + self.paired < len(document):
                end = _find_end(document, place, room, keep=int(self.paired))
                first = list(chain.from_iterable(document[place:end]))
                place, second = end, []
                if self.paired:
                    place = _find_end(document, end, room)
                    second = list(chain.from_iterable(document[end:place]))
                # Cut where the two are furthest apart, if they are too long.
                yield Pair(first[-room:] if self.paired else first[:room], second[:room], number)

    def _choose_second_texts(self, pairs: list[Pair], epoch: int) -> list[int]:
        """For each pair the pair whose second text it reads: its own for one half of them.

        The others stand in a circle, document by document, and each reads from so far ahead that
        no document reaches itself, if none is larger than all others together.
        """
        sources = list(range(len(pairs)))
        if not self.paired:
            return sources
        draws = random_stream(self.seed, epoch, 4)
        turn = torch.rand(len(self.documents), generator=draws).tolist()
        trading = torch.randperm(len(pairs), generator=draws)[: len(pairs) // 2].tolist()
        trading.sort(key=lambda place: (turn[pairs[place].document], place))
        count = len(trading)
        if count < 2:
            return sources
        sizes: dict[int, int] = {}
        for place in trading:
            sizes[pairs[place].document] = sizes.get(pairs[place].document, 0) + 1
        largest = max(sizes.values())
        least, most = (largest, count - largest) if 2 * largest <= count else (1, count - 1)
        step = int(torch.randint(least, most + 1, (1,), generator=draws))
        for place, source in zip(trading, trading[step:] + trading[:step], strict=True):
            sources[place] = source
        return sources


def _find_end(document: Sequence[Sentence], place: int, room: int, keep: int = 0) -> int:
    """Where a stretch of whole sentences ends that begins at a place and takes most of the room.

    `keep` sentences are left for whoever comes next. A stretch goes on for being short so far, and
    never for what comes next: else the length of a first text would tell something of the second.
    """
    end, size = place, 0
    while end < len(document) - keep and size < MIN_FILLED_SHARE * room:
        size += len(document[end])
        end += 1
    return end
