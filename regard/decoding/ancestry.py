"""Which row continued which: the way back from an answer to the rows it was decoded in.

In a beam the rows of one step go on from any rows of the step before, some from none, and rows that
are done leave the batch. What `watch` recorded belongs to the rows of its moment. The ancestry says
which of them an answer came through, so that its map can be stitched afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor

from regard.attention import Attended, stitch
from regard.decoding.hypothesis import Hypothesis


@dataclass
class Ancestry:
    """A table that a decoder fills while it works.

    ancestry = Ancestry()
    with watch(model) as seen:
        answers = beam(model, batch, first, config, end=end, ancestry=ancestry)
    trace_attention(seen["decoder.attention"], ancestry, answers[0][0])  # (head, query, key)
    """

    parents: list[Tensor] = field(default_factory=list)
    """For each step (row,): the row of the step before, for the first step the row of the batch."""

    def rows(self, hypothesis: Hypothesis) -> list[int]:
        """The row of the batch it answers, then its row in each of its steps."""
        steps = len(hypothesis.ids)
        if steps > len(self.parents):
            raise ValueError(
                f"hypothesis ({steps} words) is not of this ancestry, which knows "
                f"{len(self.parents)} steps"
            )
        rows = [hypothesis.row]
        for parents in reversed(self.parents[:steps]):
            if not rows[-1] < len(parents):
                raise ValueError(f"hypothesis (row {rows[-1]}) is not of this ancestry")
            rows.append(int(parents[rows[-1]]))
        return rows[::-1]


def trace_attention(
    calls: Sequence[Attended], ancestry: Ancestry, hypothesis: Hypothesis
) -> Tensor:
    """The attention weights of one answer, from what `watch` recorded while a batch was decoded.

    (head, query, key), a query for each word of the answer. Where the keys grow, as over a cache,
    shorter rows are filled up with zeros. An attention that had looked before the first step, at a
    prompt say, has those queries in front. `calls` are those of one decoding, one for each step.
    """
    before = len(calls) - len(ancestry.parents)
    if before < 0:
        raise ValueError(
            f"calls ({len(calls)}) are fewer than the {len(ancestry.parents)} steps: "
            "this attention does not look once for each word"
        )
    for step, parents in enumerate(ancestry.parents):
        count = calls[before + step].context.shape[0]
        if count != len(parents):
            raise ValueError(
                f"calls do not belong to this ancestry: one has {count} rows where step {step} "
                f"has {len(parents)}"
            )
    batch_row, *step_rows = ancestry.rows(hypothesis)
    rows = [batch_row] * before + step_rows
    # zip ends with the answer: the steps after it belong to rows that went on longer.
    return stitch([call.pick(row) for call, row in zip(calls, rows, strict=False)])
