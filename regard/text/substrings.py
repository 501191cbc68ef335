"""Every substring that words have in common, and where each begins."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from regard.text.lattice import Floats, Ints, Spans, Table

MAX_LENGTH = 16  # characters of a substring
MAX_SUBSTRINGS = 1_000_000  # substrings that are kept, those first that cover most characters
_CODE_POINTS = 0x110000  # one more than the largest code point


@dataclass(frozen=True)
class Substrings:
    """Substrings of words, and the table of where they begin in the words end to end."""

    pieces: list[str]  # in alphabetical order
    counts: Floats  # (piece,)
    lengths: Ints  # (piece,)
    first: Spans  # one occurrence of each piece
    words: Spans
    weights: Floats  # (word,) how often each was seen
    table: Table  # (length - 1, character): the piece that begins here, or -1

    @classmethod
    def of(cls, counts: Counter[str], minimum: int) -> Substrings:
        """The substrings seen `minimum` times or more, and every single character."""
        words = sorted(counts)
        text = "".join(words)
        spans = Spans.from_lengths(np.array([len(word) for word in words]))
        weights = np.array([float(counts[word]) for word in words])
        sums, first, lengths, table = _grow_substrings(text, spans, weights, minimum)
        pieces = [text[at : at + size] for at, size in zip(first, lengths, strict=True)]
        covered = np.where(lengths == 1, np.inf, sums * lengths)
        chosen = sorted(
            np.argsort(-covered, kind="stable")[:MAX_SUBSTRINGS], key=pieces.__getitem__
        )
        numbers = np.full(len(pieces) + 1, -1, dtype=np.int32)  # the last answers for -1
        numbers[chosen] = np.arange(len(chosen))
        return cls(
            pieces=[pieces[number] for number in chosen],
            counts=sums[chosen],
            lengths=lengths[chosen],
            first=Spans(first[chosen], lengths[chosen]),
            words=spans,
            weights=weights,
            table=numbers[table],
        )


def _grow_substrings(
    text: str, spans: Spans, weights: Floats, minimum: int
) -> tuple[Floats, Ints, Ints, Table]:
    """Counts, first places and lengths of the frequent substrings, and the table of all places.

    They are found by growing: a frequent substring of n + 1 characters begins with one of n.
    """
    codes = np.frombuffer(text.encode("utf-32-le"), dtype="<u4").astype(np.int64)
    word = np.repeat(np.arange(len(weights)), spans.lengths)  # (character,)
    left = (spans.starts + spans.lengths)[word] - np.arange(len(text))  # to the end of the word
    table = np.full((MAX_LENGTH, len(text)), -1, dtype=np.int32)
    sums: list[Floats] = []
    first: list[Ints] = []
    lengths: list[Ints] = []
    places: Ints = np.arange(len(text))
    names: Ints = np.zeros(len(text), dtype=np.int64)  # equal where the last substring was
    for length in range(1, MAX_LENGTH + 1):
        long_enough = left[places] >= length
        places, names = places[long_enough], names[long_enough]
        longer = names * _CODE_POINTS + codes[places + length - 1]
        _, example, names = np.unique(longer, return_index=True, return_inverse=True)
        seen = np.bincount(names, weights[word[places]]).astype(np.float64)
        frequent = (seen >= minimum) | (length == 1)
        total = sum(map(len, sums))
        numbers = np.where(frequent, total + np.cumsum(frequent) - 1, -1)
        table[length - 1, places] = numbers[names]
        sums.append(seen[frequent])
        first.append(places[example[frequent]])
        lengths.append(np.full(frequent.sum(), length))
        places, names = places[frequent[names]], names[frequent[names]]
    return np.concatenate(sums), np.concatenate(first), np.concatenate(lengths), table
