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

from regard.text.counting import rank_by_count
from regard.text.lattice import Bools, Floats, Lattice
from regard.text.substrings import Substrings

SURVIVING_SHARE = 0.75  # of the pieces that survive a pruning
EM_ROUNDS = 2  # of expectation-maximisation between two prunings
MIN_EXPECTED_USES = 0.5  # below it a piece is given up
MAX_SAMPLE_CHARACTERS = 2_000_000  # of the most frequent words: enough to judge pieces by
MAX_STRETCH_CHARACTERS = 256  # of a very long word that are looked at together


def estimate(counts: Counter[str], size: int, minimum: int) -> list[tuple[str, float]]:
    """Up to `size` pieces with their log-probabilities, the likeliest first."""
    alphabet = sorted(set().union(*counts))
    if len(alphabet) >= size:
        return [(character, 0.0) for character in alphabet]
    seeds = Substrings.of(_sample_words(counts), minimum)
    unseen = sorted(set(alphabet) - set(seeds.pieces))  # beyond the sample
    scores = _fit(seeds, seeds.counts * seeds.lengths)
    while (alive := np.isfinite(scores)).sum() > size - len(unseen):
        keep = max(size - len(unseen), int(SURVIVING_SHARE * alive.sum()))
        scores = _fit(seeds, np.where(_choose_survivors(seeds, scores, keep), np.exp(scores), 0.0))
    # Rounded, since processors differ in the last digits of a logarithm.
    found = [(seeds.pieces[at], round(float(scores[at]), 6)) for at in np.flatnonzero(alive)]
    lowest = min(score for _, score in found)
    found += [(character, lowest) for character in unseen]
    return sorted(found, key=lambda item: (-item[1], item[0]))


def _sample_words(counts: Counter[str]) -> Counter[str]:
    """The most frequent words, as many as there is room for, very long ones in stretches."""
    sample: Counter[str] = Counter()
    words = rank_by_count(counts)
    for word, total in zip(words, accumulate(map(len, words)), strict=True):
        if sample and total > MAX_SAMPLE_CHARACTERS:
            break
        for start in range(0, min(len(word), MAX_SAMPLE_CHARACTERS), MAX_STRETCH_CHARACTERS):
            sample[word[start : start + MAX_STRETCH_CHARACTERS]] += counts[word]
    return sample


def _fit(seeds: Substrings, uses: Floats) -> Floats:
    """Log-probabilities after a few rounds of counting how often each piece is expected in use."""
    words = Lattice(seeds.table, seeds.words)
    single = seeds.lengths == 1
    for _ in range(EM_ROUNDS):
        expected = words.expected_counts(_log(uses / uses.sum()), seeds.weights)
        # A character that always sits in longer pieces keeps a little, or rare words would have
        # no spelling.
        uses = np.where(
            single,
            np.maximum(expected, MIN_EXPECTED_USES),
            expected * (expected >= MIN_EXPECTED_USES),
        )
    return _log(uses / uses.sum())  # (piece,)


def _choose_survivors(seeds: Substrings, scores: Floats, keep: int) -> Bools:
    """The pieces to keep: characters, and those whose best replacement costs most.

    loss(piece) = uses · (log p(piece) − log p(its best segmentation into others))
    """
    alone = Lattice(seeds.table, seeds.first).best_split_scores(scores)  # (piece,)
    alive = np.isfinite(scores)
    words = Lattice(seeds.table, seeds.words)
    uses = words.expected_counts(scores, seeds.weights)
    loss = np.full(len(scores), -np.inf)
    loss[alive] = uses[alive] * (scores[alive] - alone[alive])
    loss[alive & (seeds.lengths == 1)] = np.inf
    # Stable: of equals the alphabetically first stays.
    chosen = np.zeros(len(scores), dtype=bool)
    chosen[np.argsort(-loss, kind="stable")[:keep]] = True
    return chosen & alive


def _log(numbers: Floats) -> Floats:
    """The logarithm, -∞ for 0."""
    with np.errstate(divide="ignore"):
        return np.log(numbers)
