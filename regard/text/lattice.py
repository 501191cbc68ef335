"""All ways to cut spans of text into known pieces, added up without being listed.

α(0) = 1, α(t) = Σ over pieces that end at t of α(t − length) · p(piece); β is the same from behind.
A piece from s to t is then used α(s) · p(piece) · β(t) / α(end) times, as far as one can expect.
All of it in logarithms, and for all spans side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]
Table = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Spans:
    """Stretches of one long text."""

    starts: Places  # (span,)
    lengths: Places  # (span,)

    @classmethod
    def side_by_side(cls, lengths: Places) -> Spans:
        return cls(np.cumsum(lengths) - lengths, lengths)


class Lattice:
    """`table` (length - 1, character) names the piece that begins at a character, or -1."""

    def __init__(self, table: Table, spans: Spans):
        self.table, self.spans = table, spans
        # A span of n characters can be cut at n + 1 nodes, its ends among them.
        self.nodes = Spans.side_by_side(spans.lengths + 1).starts  # (span,)
        self.node_count = int(spans.lengths.sum()) + len(spans.lengths)

    def expected(self, scores: Numbers, weights: Numbers) -> Numbers:
        """How often each piece is used, over all cuts of all spans: (piece,).

        The spans are words that fill the text, so a character's node follows from its word.
        """
        padded = np.append(scores, -np.inf)  # piece -1 is no piece
        ahead, behind = self._ahead(padded), self._behind(padded)
        words = np.repeat(np.arange(len(weights)), self.spans.lengths)  # (character,)
        whole = ahead[self.nodes + self.spans.lengths]  # (word,)
        uses = np.zeros(len(scores))
        for length, row in enumerate(self.table, start=1):
            places = np.flatnonzero(np.isfinite(padded)[row])
            pieces, at = row[places], words[places]
            log = ahead[places + at] + scores[pieces] + behind[places + at + length] - whole[at]
            uses += np.bincount(pieces, np.exp(log) * weights[at], len(scores))
        return uses

    def best_of_others(self, scores: Numbers) -> Numbers:
        """The log-probability of each span's best cut into two pieces or more: (span,)."""
        padded = np.append(scores, -np.inf)
        best = np.full(self.node_count, -np.inf)
        best[self.nodes] = 0.0
        for step in range(1, int(self.spans.lengths.max()) + 1):
            spans = np.flatnonzero(self.spans.lengths >= step)
            routes = self._routes(best, padded, spans, step)  # (length, span)
            if step <= len(self.table):
                routes[step - 1, self.spans.lengths[spans] == step] = -np.inf  # the span itself
            best[self.nodes[spans] + step] = routes.max(axis=0)
        return best[self.nodes + self.spans.lengths]

    def _ahead(self, padded: Numbers) -> Numbers:
        ahead = np.full(self.node_count, -np.inf)
        ahead[self.nodes] = 0.0
        for step in range(1, int(self.spans.lengths.max()) + 1):
            spans = np.flatnonzero(self.spans.lengths >= step)
            routes = self._routes(ahead, padded, spans, step)
            ahead[self.nodes[spans] + step] = np.logaddexp.reduce(routes, axis=0)
        return ahead  # (node,)

    def _routes(self, known: Numbers, padded: Numbers, spans: Places, step: int) -> Numbers:
        """For each length, how well a piece of it ends at `step`: (length, span)."""
        begin = step - np.arange(1, min(step, len(self.table)) + 1)[:, None]  # (length, 1)
        pieces = self.table[step - begin - 1, self.spans.starts[spans] + begin]
        routes: Numbers = known[self.nodes[spans] + begin] + padded[pieces]
        return routes

    def _behind(self, padded: Numbers) -> Numbers:
        behind = np.full(self.node_count, -np.inf)
        behind[self.nodes + self.spans.lengths] = 0.0
        lengths = np.arange(1, len(self.table) + 1)[:, None]  # (length, 1)
        for step in reversed(range(int(self.spans.lengths.max()))):
            spans = np.flatnonzero(self.spans.lengths > step)
            # Pieces that would reach beyond the word are -1, so the node they miss does not matter.
            end = np.minimum(self.nodes[spans] + step + lengths, self.node_count - 1)
            pieces = self.table[lengths - 1, self.spans.starts[spans] + step]
            routes = padded[pieces] + behind[end]
            behind[self.nodes[spans] + step] = np.logaddexp.reduce(routes, axis=0)
        return behind  # (node,)
