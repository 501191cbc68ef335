"""A model against a text: the loss of every word, and what follows from it."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from regard.data.feeds import Feed
from regard.models.ngram import Ngram


def carries_state(model: Any, feed: Feed) -> bool:
    """Whether what the model knows at the end of a batch is handed to it with the next."""
    return bool(getattr(model, "carries", False)) and feed.continues


@torch.no_grad()
def score(objective: nn.Module, feed: Feed, carries: bool) -> dict[str, float]:
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
    return {**metrics(total / max(tokens, 1)), "tokens": tokens, "seconds": seconds(started)}


def score_ngram(model: Ngram, words: NDArray[np.int64]) -> dict[str, float]:
    """The same of a model that counts; where its scores are no probabilities, their mean logarithm
    as `score`, and none of the names that speak of probabilities."""
    mean = float(model.log_probabilities(words).mean())
    return {**(metrics(-mean) if model.normalised else {"score": mean}), "tokens": len(words)}


def metrics(loss: float) -> dict[str, float]:
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
