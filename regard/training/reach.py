"""How far back a model looks.

Frustratingly little, say Daniluk, Rocktäschel, Welbl & Riedel (2017), section 4: most of the weight
of a language model's attention falls on the last five words.
"""

from __future__ import annotations

from typing import Any

import torch

from regard.attention import Attended, watch
from regard.attention.watching import attentions
from regard.data.feeds import Feed

BATCHES = 20  # are enough for three digits


def looks_back(model: Any) -> bool:
    """Whether there is attention in the model at all."""
    return bool(attentions(model))


@torch.no_grad()
def share_of_last(model: Any, feed: Feed, words: int = 5) -> float:
    """The share of all weight that falls on the last `words` words a position may see.

    Over the first batches of a feed, all positions that have more words than these to look at.
    """
    near, whole, state = 0.0, 0, None
    carries = getattr(model, "carries", False)
    for index in range(min(BATCHES, feed.batches(0))):
        with watch(model) as seen:
            _, state = model.features(feed.batch(0, index), state if carries else None)
        for attended in (each for calls in seen.values() for each in calls):
            part, count = _near(attended, words)
            near, whole = near + part, whole + count
    return near / max(whole, 1)


def _near(attended: Attended, words: int) -> tuple[float, int]:
    """The weight on the last `words` that can be seen, and of how many distributions."""
    weights = attended.weights  # (batch, …, query, key)
    visible = attended.visible()
    if visible is None:
        visible = torch.ones_like(weights, dtype=torch.bool)
    visible = visible.expand_as(weights)
    behind = visible.flip(-1).cumsum(-1).flip(-1)  # how many can be seen from this key on
    far_sighted = behind[..., 0] > words  # (batch, …, query)
    share = weights.masked_fill(~visible | (behind > words), 0.0).sum(-1)
    return float(share[far_sighted].sum()), int(far_sighted.sum())
