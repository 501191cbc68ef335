"""Infinite or NaN losses, gradients and weights stop a run before they are applied or saved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from torch import Tensor, nn

Place = tuple[int, int]
"""Where a batch stands: (epoch, index)."""


def check_step(
    loss: float, norm: float, step: int, places: Sequence[Place], checkpoints: Path
) -> None:
    """Refuse to apply a step whose loss or gradients are infinite or NaN."""
    for name, value in (("loss", loss), ("norm of the gradients", norm)):
        if not math.isfinite(value):
            raise FloatingPointError(
                f"the {name} is {value} at step {step} ({name_batches(places)}); "
                f"{name_newest(checkpoints)}. A smaller training.rate or training.clip often helps"
            )


def check_weights(
    model: nn.Module, weights: dict[str, Tensor], step: int, checkpoints: Path
) -> None:
    """Refuse to save weights that are infinite or NaN; buffers may be what they like."""
    for name, _ in model.named_parameters():
        if not bool(weights[name].isfinite().all()):
            raise FloatingPointError(
                f"{name} is not finite after step {step}; {name_newest(checkpoints)}. "
                "A smaller training.rate often helps"
            )


def name_batches(places: Sequence[Place]) -> str:
    """(0, 3), (0, 4), (1, 0) → "epoch 0, batches 3 to 4; epoch 1, batch 0"."""
    named = []
    for epoch, group in groupby(places, key=lambda place: place[0]):
        indices = [index for _, index in group]
        several = f"batches {indices[0]} to {indices[-1]}"
        named.append(f"epoch {epoch}, {several if len(indices) > 1 else f'batch {indices[0]}'}")
    return "; ".join(named)


def name_newest(checkpoints: Path) -> str:
    """What there is to go on from."""
    newest = max((place.name for place in checkpoints.glob("step-*")), default=None)
    return f"the newest checkpoint is {newest}" if newest else "no checkpoint was saved yet"
