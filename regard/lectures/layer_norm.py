"""Layer norm: LayerNorm(x) = (x − μ) / σ,  μ = Σ xᵢ / d,  σ² = Σ (xᵢ − μ)² / d

Zero mean and unit variance over the features of one word, whatever its neighbours and its batch do.

Ba, Kiros & Hinton (2016), section 3.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.layers import LayerNorm
from regard.lectures.catalog import TITLES
from regard.lectures.figures import decimal, decimals, exact, plain
from regard.lectures.lesson import SEQUENCES, Lesson, step

X = exact([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])


def lesson() -> Lesson:
    mean, variance = X.mean(), X.var(correction=0)
    # The ε that keeps a constant vector from 0/0 would show in the sixth digit.
    norm = LayerNorm(len(X), eps=0.0, learned=False)
    normed = norm(X)
    written = (X - mean) / variance
    moved = norm(10 * X + 3)
    beside = norm(torch.stack([X, X.flip(0) ** 2]))[0]
    return Lesson(
        name="layer-norm",
        title=TITLES["layer-norm"],
        source=SEQUENCES,
        steps=(
            step("Eight features of one word.", f"x = {decimals(X)}"),
            step(
                "Their mean, and the mean of the squared distances from it.",
                f"μ = 40/8 = {decimal(float(mean))}",
                f"σ² = (9 + 1 + 1 + 1 + 0 + 0 + 4 + 16)/8 = {decimal(float(variance))}   "
                f"σ = {decimal(float(variance.sqrt()))}",
            ),
            step(
                "Take away the mean and divide by σ, the root of the variance.",
                f"(x − μ)/σ = {decimals(normed, 2)}",
                _moments(normed),
            ),
            step(
                "Divided by the variance instead, as the lecture's σ̂ is written, the features "
                "have the mean 0 but not the variance 1.",
                f"(x − μ)/σ² = {decimals(written, 3)}",
                _moments(written),
            ),
            step(
                "Stretching and shifting all features together changes nothing, and neither does "
                "another word in the batch.",
                f"LayerNorm(10x + 3) = {decimals(moved, 2)}",
                f"with a neighbour   = {decimals(beside, 2)}",
            ),
        ),
        numbers={
            "x": plain(X),
            "mean": plain(mean),
            "variance": plain(variance),
            "normed": plain(normed),
            "normed_mean": plain(normed.mean()),
            "normed_variance": plain(normed.var(correction=0)),
            "stretched_and_shifted": plain(moved),
            "with_a_neighbour": plain(beside),
            "as_written": {
                "normed": plain(written),
                "normed_mean": plain(written.mean()),
                "normed_variance": plain(written.var(correction=0)),
            },
        },
        slip=(
            "the lecture writes σ̂ = Σ (xᵢ − μ)²/d, which is the variance, and divides by it; unit "
            "variance needs its square root. Here that is 2 in place of 4."
        ),
    )


def _moments(x: Tensor) -> str:
    mean, variance = float(x.mean()), float(x.var(correction=0))
    return f"mean {decimal(mean)}, variance {decimal(variance)}"
