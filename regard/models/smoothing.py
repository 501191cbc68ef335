"""From counts of n-grams to probabilities: three ways, all of one form.

p(w | h) = kept(hw) + backoff(h) · p(w | h′)

h′ is h without its oldest word, and behind the empty context stands the uniform 1/V. What a seen
n-gram keeps for itself and what its context hands down to shorter ones is all a smoothing decides.

An n-gram is known by its node: its place among the sorted keys of its level, where the key is
(node of all words but the last) × V + (last word). So n-grams of any order fit into 64 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

# Two nodes of no n-gram. As indices they find the last two entries of a table, which is where a
# Level keeps its answers for them.
UNSEEN = -1  # never counted
ABSENT = -2  # would reach back over the beginning of its sentence
ABOVE_ALL_KEYS = np.iinfo(np.int64).max


class Counts(NamedTuple):
    """All n-grams of one length in a corpus."""

    keys: Ints  # (ngram,) sorted
    raw: Ints  # (ngram,) how often it occurs
    contexts: Ints  # (ngram,) node of the n-gram without its last word
    suffixes: Ints  # (ngram,) node of the n-gram without its first word
    begins: NDArray[np.bool_]  # (ngram,) whether its first word is the beginning of a sentence
    context_count: int  # of n-grams one word shorter

    def sum_by_context(self, amounts: Ints | Floats) -> Floats:
        """An amount for each n-gram (ngram,) → their sum for each context (context,)."""
        return np.bincount(self.contexts, amounts, self.context_count).astype(np.float64)


class Level(NamedTuple):
    """What the n-grams of one length say."""

    keys: Ints  # (ngram + 1,) sorted; the last is above all keys, so that a search always lands
    kept: Floats  # (ngram + 2,) ends with absent, unseen
    backoff: Floats  # (context + 2,) ends with absent, unseen

    def find(self, contexts: Ints, words: Ints, vocabulary_size: int) -> Ints:
        """The nodes of contexts each followed by a word; what the context lacks, both lack."""
        keys = contexts * vocabulary_size + words
        # In sorted order one search is still in the cache from the one before: a whole corpus takes
        # a third of the time, sorting included.
        order = np.argsort(keys)
        nodes = np.empty_like(keys)
        nodes[order] = np.searchsorted(self.keys, keys[order])
        nodes = np.where(self.keys[nodes] == keys, nodes, UNSEEN)
        return np.where(contexts < 0, contexts, nodes)

    def followers(self, contexts: Ints, vocabulary_size: int) -> tuple[Ints, Ints]:
        """The first node that continues each context, and the one after the last."""
        keys = contexts * vocabulary_size
        return np.searchsorted(self.keys, keys), np.searchsorted(self.keys, keys + vocabulary_size)


def contexts_before(nodes: Ints, ids: Ints, size: int, end: int | None) -> Ints:
    """The `size`-gram before each word, of those that end at each word; both are (position,).

    The end of one sentence is the beginning of the next: a context may hold it as its oldest word
    and sees nothing behind it. The corpus begins as if a sentence had just ended.
    """
    first = ABSENT if end is None or size > 1 else end
    contexts = np.concatenate([[first], nodes[:-1]])  # (position,)
    if end is not None and size > 1:
        contexts[1:][ids[:-1] == end] = ABSENT
    return contexts


def count_ngrams(ids: Ints, order: int, vocabulary_size: int, end: int | None) -> list[Counts]:
    """The n-grams of each length from 1 to `order`."""
    nodes = ids  # of a word, so that any word can be a context, counted or not
    all_ids = np.arange(vocabulary_size)
    empty = np.zeros_like(all_ids)
    raw = np.bincount(ids, minlength=vocabulary_size)
    levels = [Counts(all_ids, raw, empty, empty, all_ids < 0, context_count=1)]
    begins = all_ids == end  # of a context; a predicted end begins nothing
    for size in range(2, order + 1):
        contexts = contexts_before(nodes, ids, size - 1, end)
        positions = np.flatnonzero(contexts >= 0)
        keys, first, inverse, raw = np.unique(
            contexts[positions] * vocabulary_size + ids[positions],
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        suffixes = nodes[positions[first]]
        begins = begins[keys // vocabulary_size]
        context_count = len(levels[-1].keys)
        levels.append(Counts(keys, raw, keys // vocabulary_size, suffixes, begins, context_count))
        nodes = np.full_like(ids, ABSENT)
        nodes[positions] = inverse
    return levels


def estimate_discounts(counts: Ints) -> Floats:
    """D₁, D₂, D₃₊ = i − (i + 1) Y tᵢ₊₁ / tᵢ with Y = t₁ / (t₁ + 2 t₂), tᵢ n-grams seen i times

    Chen & Goodman (1999), section 3. Where a small corpus leaves a tᵢ empty or turns a
    discount negative, half of each step is taken instead: ½, 1, 1½.
    """
    t1, t2, t3, t4 = np.bincount(np.minimum(counts, 5), minlength=5)[1:5].tolist()
    if min(t1, t2, t3, t4) > 0:
        Y = t1 / (t1 + 2 * t2)
        D = np.array([1 - 2 * Y * t2 / t1, 2 - 3 * Y * t3 / t2, 3 - 4 * Y * t4 / t3])
        if D.min() > 0:
            return D
    return np.array([0.5, 1.0, 1.5])


def kneser_ney(levels: Sequence[Counts]) -> list[Level]:
    """p(w | h) = (c(hw) − D(c(hw))) / c(h·) + γ(h) p(w | h′)
    γ(h) = (D₁ N₁(h·) + D₂ N₂(h·) + D₃₊ N₃₊(h·)) / c(h·)

    Below the highest order c counts not how often but after how many different words: Francisco is
    frequent, yet follows San alone, and so is no good guess where San is not in sight. An n-gram
    that begins a sentence has nothing before it and keeps its plain count.

    Kneser & Ney (1995); interpolated, with three discounts: Chen & Goodman (1999), section 3.
    """
    smoothed = []
    for level, longer in zip(levels, [*levels[1:], None], strict=True):
        counts = level.raw
        if longer is not None:
            continuations = np.bincount(longer.suffixes, minlength=len(counts))
            counts = np.where(level.begins, counts, continuations)
        by_count = np.concatenate([[0.0], estimate_discounts(counts)])  # D(0) = 0, D₁, D₂, D₃₊
        discount = by_count[np.minimum(counts, 3)]  # D(c)
        total = level.sum_by_context(counts)
        backoff = _divide(level.sum_by_context(discount), total, otherwise=1.0)
        kept = _divide(counts - discount, total[level.contexts], otherwise=0.0)
        smoothed.append(_make_level(level.keys, kept, backoff, unseen=1.0))
    return smoothed


def additive(levels: Sequence[Counts], vocabulary_size: int, added_count: float) -> list[Level]:
    """p(w | h) = (c(hw) + α) / (c(h) + αV)

    Every word is counted α times more than it came: Laplace with α = 1, Lidstone with less. No
    shorter context is asked, so shorter n-grams count only where a sentence begins.
    """
    smoothed = []
    for level, longer in zip(levels, [*levels[1:], None], strict=True):
        counts = level.raw if longer is None else np.where(level.begins, level.raw, 0)
        total = level.sum_by_context(counts)
        mass = total + added_count * vocabulary_size
        backoff = np.where(total > 0, added_count * vocabulary_size / mass, 1.0)
        smoothed.append(_make_level(level.keys, counts / mass[level.contexts], backoff, unseen=1.0))
    return smoothed


def stupid_backoff(levels: Sequence[Counts], vocabulary_size: int, backoff: float) -> list[Level]:
    """S(w | h) = c(hw) / c(h) if hw was seen, else 0.4 · S(w | h′)

    Not a probability: the scores of a context add up to more than 1. They need no discounts and
    are good enough for a very large corpus. A word never seen gets 0.4 / V.

    Brants et al. (2007), section 4.
    """
    smoothed = []
    scores = np.array([1 / vocabulary_size])  # of the shorter n-grams
    for level in levels:
        seen = _divide(level.raw, level.sum_by_context(level.raw)[level.contexts], otherwise=0.0)
        # Kept as what is missing from the share of the shorter n-gram, so that the sum of both,
        # which is how a Level is read, is c(hw) / c(h) again.
        kept = np.where(level.raw > 0, seen - backoff * scores[level.suffixes], 0.0)
        backoffs = np.full(level.context_count, backoff)
        smoothed.append(_make_level(level.keys, kept, backoffs, unseen=backoff))
        scores = seen
    return smoothed


def _divide(part: Ints | Floats, whole: Floats, otherwise: float) -> Floats:
    """part / whole, and `otherwise` where there is no whole."""
    return np.divide(part, whole, where=whole > 0, out=np.full(len(whole), otherwise))


def _make_level(keys: Ints, kept: Floats, backoff: Floats, unseen: float) -> Level:
    """A level with its answers for what is absent, which changes nothing, and what is unseen."""
    keys = np.append(keys, ABOVE_ALL_KEYS)
    return Level(keys, np.append(kept, [0, 0]), np.append(backoff, [1, unseen]))
