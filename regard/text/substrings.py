"""Every substring that words have in common, and where each begins."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from .lattice import Numbers, Places, Spans, Table

LONGEST = 16  # characters in a substring
MOST = 1_000_000  # substrings that are kept, those first that cover most characters
_CODES = 0x110000  # one more than the largest code point


@dataclass(frozen=True)
class Substrings:
    """Substrings of words that were laid end to end."""

    pieces: list[str]  # in alphabetical order
    counts: Numbers  # (piece,)
    lengths: Places  # (piece,)
    first: Spans  # one occurrence of each piece
    words: Spans
    weights: Numbers  # (word,) how often each was seen
    table: Table  # (length - 1, character): the piece that begins here, or -1

    @classmethod
    def of(cls, counts: Counter[str], minimum: int) -> Substrings:
        """Those seen `minimum` times or more, and every single character."""
        words = sorted(counts)
        text = "".join(words)
        spans = Spans.side_by_side(np.array([len(word) for word in words]))
        weights = np.array([float(counts[word]) for word in words])
        sums, first, lengths, table = _grown(text, spans, weights, minimum)
        pieces = [text[at : at + size] for at, size in zip(first, lengths, strict=True)]
        covered = np.where(lengths == 1, np.inf, sums * lengths)
        kept = sorted(np.argsort(-covered, kind="stable")[:MOST], key=pieces.__getitem__)
        numbers = np.full(len(pieces) + 1, -1, dtype=np.int32)  # the last answers for -1
        numbers[kept] = np.arange(len(kept))
        return cls(
            pieces=[pieces[number] for number in kept],
            counts=sums[kept],
            lengths=lengths[kept],
            first=Spans(first[kept], lengths[kept]),
            words=spans,
            weights=weights,
            table=numbers[table],
        )


def _grown(
    text: str, spans: Spans, weights: Numbers, minimum: int
) -> tuple[Numbers, Places, Places, Table]:
    """Counts, first places and lengths of the frequent substrings, and the table of all places.

    They are found by growing: a frequent substring of n + 1 characters begins with one of n.
    """
    codes = np.frombuffer(text.encode("utf-32-le"), dtype="<u4").astype(np.int64)
    word = np.repeat(np.arange(len(weights)), spans.lengths)  # (character,)
    left = (spans.starts + spans.lengths)[word] - np.arange(len(text))  # to the end of the word
    table = np.full((LONGEST, len(text)), -1, dtype=np.int32)
    sums: list[Numbers] = []
    first: list[Places] = []
    lengths: list[Places] = []
    places: Places = np.arange(len(text))
    names: Places = np.zeros(len(text), dtype=np.int64)  # equal where the last substring was
    for length in range(1, LONGEST + 1):
        going = left[places] >= length
        places, names = places[going], names[going]
        grown = names * _CODES + codes[places + length - 1]
        _, example, names = np.unique(grown, return_index=True, return_inverse=True)
        seen = np.bincount(names, weights[word[places]]).astype(np.float64)
        frequent = (seen >= minimum) | (length == 1)
        known = sum(map(len, sums))
        numbers = np.where(frequent, known + np.cumsum(frequent) - 1, -1)
        table[length - 1, places] = numbers[names]
        sums.append(seen[frequent])
        first.append(places[example[frequent]])
        lengths.append(np.full(frequent.sum(), length))
        places, names = places[frequent[names]], names[frequent[names]]
    return np.concatenate(sums), np.concatenate(first), np.concatenate(lengths), table
