"""An objective against a feed: its parts and reports, and what follows from them."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.data.batches import Batch
from regard.data.feeds import Feed
from regard.tasks.objective import Objective, Totals


class Scored(NamedTuple):
    """The metrics over a feed, and what was predicted for each row, if anything."""

    values: dict[str, Any]
    predictions: list[Tensor]  # one a batch


def carries_state(model: Any, feed: Feed[Batch]) -> bool:
    """Whether what the model knows at the end of a batch is handed to it with the next."""
    return bool(getattr(model, "carries", False)) and feed.continues


@torch.no_grad()
def score(objective: Objective[Any], feed: Feed[Batch], wrapped: Any = None) -> Scored:
    """Metrics, tokens and seconds over all of a feed, without dropout.

    `wrapped` is the objective as DDP or FSDP have it, if they do.
    """
    forward = objective if wrapped is None else wrapped
    carries, was = carries_state(objective.model, feed), objective.training
    started, state, tokens = time.monotonic(), None, 0
    totals, predictions = Totals.zero(), []
    objective.eval()
    for index in range(feed.batches(0)):
        batch = feed.batch(0, index)
        outcome = forward(batch, state if carries else None)
        state = outcome.state
        totals.add(outcome, objective.counts(batch))
        tokens += batch.tokens
        if outcome.predictions is not None:
            predictions.append(outcome.predictions)
    objective.train(was)
    means = totals.means()
    for name in objective.weights:
        if not math.isfinite(means[name]):
            broken = f"the {name} over {tokens} tokens is {means[name]}: the model is broken"
            raise FloatingPointError(broken)
    values = {**objective.metrics(means), "tokens": tokens, "seconds": seconds_since(started)}
    return Scored(values, predictions)


def seconds_since(started: float) -> float:
    return round(time.monotonic() - started, 2)
