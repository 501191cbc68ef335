"""All ways to cut spans of text into known pieces, added up without being listed.

α(0) = 1, α(t) = Σ over pieces that end at t of α(t − length) · p(piece); β the same from the end.
A piece from s to t is then used α(s) · p(piece) · β(t) / α(end) times, as far as one can expect.
All of it in logarithms, and for all spans side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Table = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Spans:
    """Stretches of one long text."""

    starts: Ints  # (span,)
    lengths: Ints  # (span,)

    @classmethod
    def from_lengths(cls, lengths: Ints) -> Spans:
        """Spans end to end, the first at the beginning of the text."""
        return cls(np.cumsum(lengths) - lengths, lengths)


class Lattice:
    """The pieces that spans can be cut into, and the sums over all such cuts.

    `table` (length - 1, character) names the piece that begins at a character, or -1.
    """

    def __init__(self, table: Table, spans: Spans):
        self.table, self.spans = table, spans
        # A span of n characters can be cut at n + 1 nodes, its ends among them.
        self.nodes = Spans.from_lengths(spans.lengths + 1).starts  # (span,)
        self.node_count = int(spans.lengths.sum()) + len(spans.lengths)

    def expected_counts(self, scores: Floats, weights: Floats) -> Floats:
        """How often each piece is used, over all cuts of all spans: (piece,).

        The spans are words that fill the text, so a character's node follows from its word.
        """
        padded = np.append(scores, -np.inf)  # piece -1 is no piece
        forward, backward = self._forward(padded), self._backward(padded)
        words = np.repeat(np.arange(len(weights)), self.spans.lengths)  # (character,)
        total = forward[self.nodes + self.spans.lengths]  # (word,)
        uses = np.zeros(len(scores))
        for length, row in enumerate(self.table, start=1):
            places = np.flatnonzero(np.isfinite(padded)[row])
            pieces, at = row[places], words[places]
            log = forward[places + at] + scores[pieces] + backward[places + at + length] - total[at]
            uses += np.bincount(pieces, np.exp(log) * weights[at], len(scores))
        return uses

    def best_split_scores(self, scores: Floats) -> Floats:
        """The log-probability of each span's best cut into two pieces or more: (span,)."""
        padded = np.append(scores, -np.inf)
        best = np.full(self.node_count, -np.inf)
        best[self.nodes] = 0.0
        for step in range(1, int(self.spans.lengths.max()) + 1):
            spans = np.flatnonzero(self.spans.lengths >= step)
            paths = self._path_scores(best, padded, spans, step)  # (length, span)
            if step <= len(self.table):
                paths[step - 1, self.spans.lengths[spans] == step] = -np.inf  # the span itself
            best[self.nodes[spans] + step] = paths.max(axis=0)
        return best[self.nodes + self.spans.lengths]

    def _forward(self, padded: Floats) -> Floats:
        """log α: of all ways to a node from the start of its span."""
        forward = np.full(self.node_count, -np.inf)
        forward[self.nodes] = 0.0
        for step in range(1, int(self.spans.lengths.max()) + 1):
            spans = np.flatnonzero(self.spans.lengths >= step)
            paths = self._path_scores(forward, padded, spans, step)
            forward[self.nodes[spans] + step] = np.logaddexp.reduce(paths, axis=0)
        return forward  # (node,)

    def _path_scores(self, scores: Floats, padded: Floats, spans: Ints, step: int) -> Floats:
        """The score up to `step` when the last piece has each length: (length, span)."""
        begin = step - np.arange(1, min(step, len(self.table)) + 1)[:, None]  # (length, 1)
        pieces = self.table[step - begin - 1, self.spans.starts[spans] + begin]
        paths: Floats = scores[self.nodes[spans] + begin] + padded[pieces]
        return paths

    def _backward(self, padded: Floats) -> Floats:
        """log β: of all ways from a node to the end of its span."""
        backward = np.full(self.node_count, -np.inf)
        backward[self.nodes + self.spans.lengths] = 0.0
        lengths = np.arange(1, len(self.table) + 1)[:, None]  # (length, 1)
        for step in reversed(range(int(self.spans.lengths.max()))):
            spans = np.flatnonzero(self.spans.lengths > step)
            # Pieces that would reach beyond the word are -1, so the node they miss does not matter.
            end = np.minimum(self.nodes[spans] + step + lengths, self.node_count - 1)
            pieces = self.table[lengths - 1, self.spans.starts[spans] + step]
            paths = padded[pieces] + backward[end]
            backward[self.nodes[spans] + step] = np.logaddexp.reduce(paths, axis=0)
        return backward  # (node,)
