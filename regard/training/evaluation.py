"""A model against a text: the loss of every word, and what follows from it."""

from __future__ import annotations

import math
import time
from typing import Any

import torch
from torch import nn

from regard.data.feeds import Feed


@torch.no_grad()
def scored(objective: nn.Module, feed: Feed, carries: bool) -> dict[str, float]:
    """Loss in nats a token, perplexity, bits, tokens and seconds, over all of a feed."""
    was, started, state = objective.training, time.monotonic(), None
    objective.eval()
    total, tokens = 0.0, 0
    for index in range(feed.batches(0)):
        batch = feed.batch(0, index)
        loss, state = objective(batch, state if carries else None)
        total, tokens = total + float(loss), tokens + batch.tokens
    objective.train(was)
    if not math.isfinite(total):
        raise FloatingPointError(f"the loss over {tokens} tokens is {total}: the model is broken")
    return {**figures(total / max(tokens, 1)), "tokens": tokens, "seconds": seconds(started)}


def figures(loss: float) -> dict[str, float]:
    """One loss under its three names."""
    return {
        "loss": loss,
        "perplexity": math.exp(min(loss, 700.0)),
        "bits": loss / math.log(2),
    }


def seconds(started: float) -> float:
    return round(time.monotonic() - started, 2)


def signature(recipe: Any, metric: str, value: float, **rest: Any) -> str:
    """A number with its story: `perplexity 141.2 | recipe:ptb-kn5 | data:valid | seed:1`."""
    parts = [f"{metric} {value:.4g}", f"recipe:{recipe.name}"]
    parts += [f"{key}:{item}" for key, item in rest.items()]
    return " | ".join([*parts, f"seed:{recipe.seed}"])
