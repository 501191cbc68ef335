"""The unigram model of pieces, from words and how often they were seen.

P(word) = Σ over its segmentations Π p(piece). Start with every substring seen often enough, fit p
by expectation-maximisation, drop the pieces the likelihood would miss least, and go on until as
many are left as asked for. Single characters are never dropped, so every word stays spellable.

Kudo (2018), section 3.2. Estimated here and not by the library's trainer, which adds up in the
order of a hash table and so gives another vocabulary each time.
"""

from collections import Counter
from itertools import accumulate

import numpy as np

from .counting import ranked
from .lattice import Lattice, Numbers, Truths
from .substrings import Substrings

SHARE = 0.75  # of the pieces that survive a pruning
ROUNDS = 2  # of expectation-maximisation between two prunings
SELDOM = 0.5  # expected uses below which a piece is given up
SAMPLE = 2_000_000  # characters of the most frequent words: enough to judge pieces by
STRETCH = 256  # characters of a very long word that are looked at together


def estimate(counts: Counter[str], room: int, minimum: int) -> list[tuple[str, float]]:
    """Up to `room` pieces with their log-probabilities, the likeliest first."""
    alphabet = sorted(set().union(*counts))
    if len(alphabet) >= room:
        return [(character, 0.0) for character in alphabet]
    seeds = Substrings.of(_sample(counts), minimum)
    unseen = sorted(set(alphabet) - set(seeds.pieces))  # beyond the sample
    scores = _fitted(seeds, seeds.counts * seeds.lengths)
    while (alive := np.isfinite(scores)).sum() > room - len(unseen):
        keep = max(room - len(unseen), int(SHARE * alive.sum()))
        scores = _fitted(seeds, np.where(_dear(seeds, scores, keep), np.exp(scores), 0.0))
    # Rounded, since processors differ in the last digits of a logarithm.
    found = [(seeds.pieces[at], round(float(scores[at]), 6)) for at in np.flatnonzero(alive)]
    lowest = min(score for _, score in found)
    found += [(character, lowest) for character in unseen]
    return sorted(found, key=lambda item: (-item[1], item[0]))


def _sample(counts: Counter[str]) -> Counter[str]:
    """The most frequent words, as many as there is room for, very long ones in stretches."""
    taken: Counter[str] = Counter()
    words = ranked(counts)
    for word, total in zip(words, accumulate(map(len, words)), strict=True):
        if taken and total > SAMPLE:
            break
        for start in range(0, min(len(word), SAMPLE), STRETCH):
            taken[word[start : start + STRETCH]] += counts[word]
    return taken


def _fitted(seeds: Substrings, uses: Numbers) -> Numbers:
    """Log-probabilities after a few rounds of counting how often each piece is expected in use."""
    words = Lattice(seeds.table, seeds.words)
    single = seeds.lengths == 1
    for _ in range(ROUNDS):
        expected = words.expected(_logarithm(uses / uses.sum()), seeds.weights)
        # A character that always sits in longer pieces keeps a little, or rare words would have
        # no spelling.
        uses = np.where(single, np.maximum(expected, SELDOM), expected * (expected >= SELDOM))
    return _logarithm(uses / uses.sum())  # (piece,)


def _dear(seeds: Substrings, scores: Numbers, keep: int) -> Truths:
    """The pieces to keep: characters, and those whose best replacement costs most.

    loss(piece) = uses · (log p(piece) − log p(its best segmentation into others))
    """
    alone = Lattice(seeds.table, seeds.first).best_of_others(scores)  # (piece,)
    alive = np.isfinite(scores)
    words = Lattice(seeds.table, seeds.words)
    uses = words.expected(scores, seeds.weights)
    loss = np.full(len(scores), -np.inf)
    loss[alive] = uses[alive] * (scores[alive] - alone[alive])
    loss[alive & (seeds.lengths == 1)] = np.inf
    # Stable: of equals the alphabetically first stays.
    kept = np.zeros(len(scores), dtype=bool)
    kept[np.argsort(-loss, kind="stable")[:keep]] = True
    return kept & alive


def _logarithm(numbers: Numbers) -> Numbers:
    with np.errstate(divide="ignore"):
        return np.log(numbers)
