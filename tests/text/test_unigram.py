"""Against a listing of all segmentations, one by one."""

from collections import Counter
from itertools import combinations, pairwise
from math import exp, inf, log

import numpy as np
import pytest

from regard.text.lattice import Lattice
from regard.text.substrings import Substrings
from regard.text.unigram import estimate

WORDS = Counter({"abab": 3.0, "aba": 2.0, "b": 7.0, "caab": 5.0})
PROBABILITIES = {"a": 0.2, "b": 0.15, "c": 0.05, "ab": 0.3, "ba": 0.1, "aba": 0.2}


def segmentations(word: str):
    """Every way to cut a word into pieces."""
    for cuts in range(len(word)):
        for places in combinations(range(1, len(word)), cuts):
            ends = [0, *places, len(word)]
            yield [word[start:end] for start, end in pairwise(ends)]


def probability(pieces: list[str]) -> float:
    return exp(sum(log(PROBABILITIES.get(piece, 0) or 1e-300) for piece in pieces))


@pytest.fixture
def seeds() -> Substrings:
    return Substrings.of(WORDS, 1)


@pytest.fixture
def scores(seeds) -> np.ndarray:
    return np.array([log(PROBABILITIES[p]) if p in PROBABILITIES else -inf for p in seeds.pieces])


def test_substrings_are_counted_as_often_as_their_words(seeds):
    expected: Counter = Counter()
    for word, count in WORDS.items():
        for start in range(len(word)):
            for end in range(start + 1, len(word) + 1):
                expected[word[start:end]] += count
    assert seeds.pieces == sorted(expected)
    assert dict(zip(seeds.pieces, seeds.counts, strict=True)) == expected


def test_rare_substrings_are_left_out_but_not_rare_characters():
    pieces = Substrings.of(Counter({"ab": 5, "ac": 2}), 3).pieces
    assert pieces == ["a", "ab", "b", "c"]


def test_every_place_of_a_substring_is_in_the_table(seeds):
    text = "".join(sorted(WORDS))
    for length, row in enumerate(seeds.table, start=1):
        for place, piece in enumerate(row):
            if piece >= 0:
                assert text[place : place + length] == seeds.pieces[piece]
    assert (seeds.table >= 0).sum() == sum(n * (n + 1) // 2 for n in map(len, WORDS))


def test_expected_uses_agree_with_a_listing_of_all_segmentations(seeds, scores):
    expected: Counter = Counter()
    for word, count in WORDS.items():
        ways = list(segmentations(word))
        total = sum(map(probability, ways))
        for way in ways:
            for piece in way:
                expected[piece] += count * probability(way) / total
    uses = Lattice(seeds.table, seeds.words).expected_counts(scores, seeds.weights)
    np.testing.assert_allclose(uses, [expected[piece] for piece in seeds.pieces], atol=1e-9)


def test_the_best_replacement_of_a_piece_agrees_with_a_listing(seeds, scores):
    best = Lattice(seeds.table, seeds.first).best_split_scores(scores)
    for piece, found in zip(seeds.pieces, best, strict=True):
        others = [probability(way) for way in segmentations(piece) if len(way) > 1]
        assert exp(found) == pytest.approx(max(others, default=0.0), abs=1e-12)


def test_pieces_of_words_outlive_accidental_ones():
    stems, suffixes = ("bark", "help", "jump", "lick", "rent", "sow"), ("ed", "ing", "s")
    # Each word is seen once, so no word is a piece of its own: stems are seen thrice, suffixes six
    # times, and the suffix s is a character anyway.
    words = Counter({stem + suffix: 1 for stem in stems for suffix in suffixes})
    characters = set("".join(words))
    pieces = dict(estimate(words, len(characters) + 8, 2))
    assert pieces.keys() == characters.union(stems, suffixes)


def test_probabilities_add_up_to_one():
    pieces = estimate(WORDS, 5, 1)
    assert sum(exp(score) for _, score in pieces) == pytest.approx(1.0, abs=1e-5)
    assert [score for _, score in pieces] == sorted((s for _, s in pieces), reverse=True)


def test_all_characters_stay_also_those_beyond_the_sample(monkeypatch):
    monkeypatch.setattr("regard.text.unigram.MAX_SAMPLE_CHARACTERS", 6)
    pieces = dict(estimate(Counter({"abc": 9, "abd": 8, "xyz": 1}), 8, 2))
    assert set("abcdxyz") <= pieces.keys()
    assert len(pieces) == 8


def test_a_very_long_word_is_looked_at_in_stretches():
    likeliest = estimate(Counter({"ab" * 5000: 1}), 5, 2)[0]
    assert likeliest[0] == "ab" * 8  # the longest piece there is, 16 times in each stretch of 256
