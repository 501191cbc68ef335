"""Every metric by its plain name: what it measures, and which way is up."""

from __future__ import annotations

import math
from dataclasses import dataclass

from regard.naming import suggest


@dataclass(frozen=True)
class Metric:
    """What a name in a recipe or a record stands for."""

    name: str
    higher_is_better: bool
    description: str


METRICS: dict[str, Metric] = {
    each.name: each
    for each in (
        Metric("perplexity", False, "exp of the loss: among how many tokens the model wavers"),
        Metric("loss", False, "negative log-likelihood, in nats; of numbers, the squared error"),
        Metric("bits", False, "the loss in bits instead of nats; of bit sequences, a sequence's"),
        Metric("wrong_bits", False, "bits of a sequence that are wrong"),
        Metric("bleu", True, "n-grams of a translation found in its references, 0 to 100"),
        Metric("chrf", True, "F-score over the characters' n-grams, 0 to 100"),
        Metric("accuracy", True, "share of labels that are right"),
        Metric("r2", True, "share of the variance of numbers that is explained, at most 1"),
        Metric("mse", False, "mean squared error of numbers, in their own units"),
        Metric("f1", True, "harmonic mean of precision and recall"),
        Metric("masked_accuracy", True, "share of masked tokens that are guessed right"),
        Metric("nsp_accuracy", True, "share of pairs told right: next sentence, or not"),
        Metric("exact_match", True, "share of answers that equal a reference, letter for letter"),
        Metric("aer", False, "alignment error rate of word links against gold links"),
        Metric("pointing", True, "share of words whose strongest weight is on a linked word"),
        Metric("reward", True, "mean return of an episode"),
        Metric("score", True, "log-probability of an answer over its length penalty"),
    )
}


def metric(name: str) -> Metric:
    """Look a metric up by its plain name."""
    if name not in METRICS:
        raise ValueError(f"metric ({name!r}) is not known; {suggest(name, METRICS)}")
    return METRICS[name]


def is_better(name: str, new: float, old: float) -> bool:
    """Tell whether `new` beats `old`; equal is not better, and any number beats NaN."""
    higher_is_better = metric(name).higher_is_better
    # Every comparison with NaN is false: a run whose first score is NaN would keep it for good.
    if math.isnan(old):
        return not math.isnan(new)
    return new > old if higher_is_better else new < old
