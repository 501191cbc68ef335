"""How far back a model looks.

Frustratingly little, say Daniluk, Rocktäschel, Welbl & Riedel (2017), section 4: most of the weight
of a language model's attention falls on the last five words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from regard.attention import Attended, watch
from regard.attention.watching import attentions
from regard.data.batches import Batch, Words
from regard.data.feeds import Feed
from regard.tasks.scoring import carries_state

MAX_BATCHES = 20  # are enough for three digits


@torch.no_grad()
def share_of_last(model: Any, feed: Feed[Batch], words: int = 5) -> float | None:
    """The share of all weight that falls on the last `words` words a position may see.

    Over the first batches of a feed, all words that have more than these to look at. None for a
    model without attention.
    """
    if not attentions(model):
        return None
    near, whole, state = 0.0, 0, None
    carried = carries_state(model, feed)
    for index in range(min(MAX_BATCHES, feed.batches(0))):
        batch = feed.batch(0, index)
        assert isinstance(batch, Words)
        with watch(model) as seen:
            _, state = model.features(batch, state if carried else None)
        for calls in seen.values():
            for attended, real in zip(calls, _real_queries(calls, batch.mask), strict=True):
                part, count = _near(attended, words, real)
                near, whole = near + part, whole + count
    return near / max(whole, 1)


def _real_queries(calls: Sequence[Attended], mask: Tensor) -> Iterator[Tensor]:
    """For each call which of its queries are words, out of the batch's (batch, position): a call
    has all of them, or the next few."""
    first = 0
    for attended in calls:
        count = attended.comparison.sizes[0]
        yield mask[:, first : first + count]
        first = (first + count) % mask.shape[1]


def _near(attended: Attended, words: int, real: Tensor) -> tuple[float, int]:
    """The weight on the last `words` that can be seen, and of how many distributions.

    real (batch, query) is True for words, and False for what fills up a row."""
    weights = attended.weights  # (batch, …, query, key)
    visible = attended.visible()
    if visible is None:
        visible = torch.ones_like(weights, dtype=torch.bool)
    visible = visible.expand_as(weights)
    behind = visible.flip(-1).cumsum(-1).flip(-1)  # how many can be seen from this key on
    heads = behind.dim() - 3
    real = real.view(len(real), *[1] * heads, -1)  # (batch, …, query)
    far_sighted = (visible.sum(-1) > words) & real  # (batch, …, query)
    share = weights.masked_fill(~visible | (behind > words), 0.0).sum(-1)
    return float(share[far_sighted].sum()), int(far_sighted.sum())
