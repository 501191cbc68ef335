"""The learning rate as a pure function of where training stands.

Every schedule is `factor(step, epoch, history)`: the number of optimizer steps taken, the epoch
as a number that grows within it, and the validation losses so far, newest last. Nothing else is
remembered, so a resumed run has the rates of one never stopped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from regard.config import ScheduleConfig


def factor(
    config: ScheduleConfig, total: int, step: int, epoch: float, history: Sequence[float]
) -> float:
    """What the learning rate is multiplied by at this step, counted from 0."""
    rising = min(1.0, (step + 1) / config.warmup) if config.warmup else 1.0
    end = config.steps or total
    share = min(max((step - config.warmup) / max(end - config.warmup, 1), 0.0), 1.0)
    match config.kind:
        case "constant":
            return rising
        case "inverse-square-root":
            return inverse_square_root(step, config.warmup)
        case "cosine":
            wave = (1 + math.cos(math.pi * share)) / 2
            return rising * (config.floor + (1 - config.floor) * wave)
        case "linear":
            return rising * (config.floor + (1 - config.floor) * (1 - share))
        case "decay":
            return rising * config.factor ** max(math.floor(epoch) + 1 - config.after, 0)
        case "plateau":
            return rising * max(config.floor, config.factor ** count_cuts(history, config.after))
        case "one-cycle":
            return one_cycle(min((step + 1) / max(end, 1), 1.0), config.peak)


def inverse_square_root(step: int, warmup: int) -> float:
    """min((s + 1) / w, √(w / (s + 1))): up in a line, down as a root; 1 at the end of the warm-up.

    Vaswani et al. (2017), section 5.3, up to the constant √(model size · w).
    """
    warmup = max(warmup, 1)
    return min((step + 1) / warmup, math.sqrt(warmup / (step + 1)))


def one_cycle(share: float, peak: float) -> float:
    """Up to the peak and down to nothing along half cosines. Smith & Topin (2019), section 3."""
    if share < peak:
        return 0.04 + 0.96 * (1 - math.cos(math.pi * share / peak)) / 2
    return (1 + math.cos(math.pi * (share - peak) / (1 - peak))) / 2


def count_cuts(history: Sequence[float], patience: int) -> int:
    """How often the loss failed to improve for `patience` evaluations in a row."""
    best, waited, count = math.inf, 0, 0
    for loss in history:
        if loss < best:
            best, waited = loss, 0
        else:
            waited += 1
            if waited >= max(patience, 1):
                waited, count = 0, count + 1
    return count
