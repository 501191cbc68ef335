"""Loss, perplexity and bits, from the sum of a model's losses."""

from __future__ import annotations

import math

from regard.metrics.score import Score

LARGEST_EXPONENT = 700.0  # exp(709.8) is the largest a float can hold


def likelihood_scores(loss_sum: float, count: int) -> list[Score]:
    """Give loss, perplexity and bits of `count` targets whose losses in nats add up to `loss_sum`.

    loss = −1/N Σ ln p(xₙ),   perplexity = exp(loss),   bits = loss / ln 2

    A perplexity above exp(700) is given as exp(700), and its signature says so.
    """
    if count < 1:
        raise ValueError(f"count ({count}) must be at least 1: a mean over nothing is no number")
    if not math.isfinite(loss_sum):
        raise ValueError(f"loss_sum ({loss_sum}) must be finite: some target has no probability")
    loss = loss_sum / count
    signature = f"count:{count}"
    capped = "|capped:exp(700)" if loss > LARGEST_EXPONENT else ""
    return [
        Score("loss", loss, signature),
        Score("perplexity", math.exp(min(loss, LARGEST_EXPONENT)), signature + capped),
        Score("bits", loss / math.log(2), signature),
    ]
