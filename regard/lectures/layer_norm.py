"""Layer norm: LayerNorm(x) = (x − μ) / σ,  μ = Σ xᵢ / d,  σ² = Σ (xᵢ − μ)² / d

Zero mean and unit variance over the features of one word, whatever its neighbours and its batch do.

Ba, Kiros & Hinton (2016), section 3.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.layers import LayerNorm
from regard.lectures.catalog import TITLES
from regard.lectures.formatting import decimal, decimals, double, to_list
from regard.lectures.lesson import SEQUENCES, Lesson, step

X = double([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
STRETCH, SHIFT = 10, 3


def lesson() -> Lesson:
    mean, variance = X.mean(), X.var(correction=0)
    # The ε that keeps a constant vector from 0/0 would show in the sixth digit.
    norm = LayerNorm(len(X), eps=0.0, elementwise_affine=False)
    normed = norm(X)
    as_written = (X - mean) / variance
    moved = norm(STRETCH * X + SHIFT)
    beside = norm(torch.stack([X, X.flip(0) ** 2]))[0]
    distances = " + ".join(decimal(distance) for distance in (X - mean).square().tolist())
    deviation = decimal(float(variance.sqrt()))
    return Lesson(
        name="layer-norm",
        title=TITLES["layer-norm"],
        source=SEQUENCES,
        steps=(
            step(f"{len(X)} features of one word.", f"x = {decimals(X)}"),
            step(
                "Their mean, and the mean of the squared distances from it.",
                f"μ = {decimal(float(X.sum()))}/{len(X)} = {decimal(float(mean))}",
                f"σ² = ({distances})/{len(X)} = {decimal(float(variance))}   σ = {deviation}",
            ),
            step(
                "Take away the mean and divide by σ, the root of the variance.",
                f"(x − μ)/σ = {decimals(normed, 2)}",
                _moments(normed),
            ),
            step(
                "Divided by the variance instead, as the lecture's σ̂ is written, the features "
                "have the mean 0 but not the variance 1.",
                f"(x − μ)/σ² = {decimals(as_written, 3)}",
                _moments(as_written),
            ),
            step(
                "Stretching and shifting all features together changes nothing, and neither does "
                "another word in the batch.",
                f"LayerNorm({STRETCH}x + {SHIFT}) = {decimals(moved, 2)}",
                f"with a neighbour   = {decimals(beside, 2)}",
            ),
        ),
        numbers={
            "x": to_list(X),
            "mean": to_list(mean),
            "variance": to_list(variance),
            "normed": to_list(normed),
            "normed_mean": to_list(normed.mean()),
            "normed_variance": to_list(normed.var(correction=0)),
            "stretched_and_shifted": to_list(moved),
            "with_a_neighbour": to_list(beside),
            "as_written": {
                "normed": to_list(as_written),
                "normed_mean": to_list(as_written.mean()),
                "normed_variance": to_list(as_written.var(correction=0)),
            },
        },
        slip=(
            "the lecture writes σ̂ = Σ (xᵢ − μ)²/d, which is the variance, and divides by it; unit "
            f"variance needs its square root. Here that is {deviation} in place of "
            f"{decimal(float(variance))}."
        ),
    )


def _moments(x: Tensor) -> str:
    mean, variance = float(x.mean()), float(x.var(correction=0))
    return f"mean {decimal(mean)}, variance {decimal(variance)}"
