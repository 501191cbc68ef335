"""Positions as waves: PE(pos, 2k) = sin(pos / 10000^(2k/d)),  PE(pos, 2k + 1) = cos of the same

A binary counter tells positions apart by digits that flip at different speeds; sines and cosines
are the same idea made smooth.

Vaswani et al. (2017), section 3.5.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.attention import Sinusoidal, sinusoids
from regard.lectures.catalog import TITLES
from regard.lectures.figures import decimal, plain, table
from regard.lectures.lesson import MODELS, SEQUENCES, Lesson, step
from regard.looking import Curves

SIZE, SHOWN, DRAWN = 4, 8, 21
WAVES = ("sin pos", "cos pos", "sin(pos/100)", "cos(pos/100)")
WRITTEN = ("sin pos", "cos(pos/10)", "sin(pos/100)", "cos(pos/1000)")


def as_written(positions: Tensor) -> Tensor:
    """The lecture's general formula: index i in the exponent of the cosine too, (position, 4)."""
    index = torch.arange(SIZE, dtype=torch.float64)
    angles = positions.unsqueeze(-1) / 10000.0 ** (index / SIZE)
    return torch.where(index % 2 == 0, angles.sin(), angles.cos())


def lesson() -> Lesson:
    rows = sinusoids(torch.arange(SHOWN), SIZE)
    written = as_written(torch.arange(SHOWN))
    drawn = sinusoids(torch.arange(DRAWN), SIZE)
    word = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    added = Sinusoidal(SIZE)(word.unsqueeze(0), start=1)[0]
    counter = [f"{position:04b}" for position in range(SHOWN)]
    return Lesson(
        name="positions",
        title=TITLES["positions"],
        source=f"{MODELS}; {SEQUENCES}",
        steps=(
            step(
                "A counter in binary tells positions apart: the last digit flips at every step, "
                "the one before at every second, and so on.",
                *(f"{position}: {' '.join(digits)}" for position, digits in enumerate(counter)),
            ),
            step(
                "Waves do it smoothly. With d = 4 there are two speeds, 1/10000⁰ = 1 and "
                "1/10000^(2/4) = 1/100, and a sine and a cosine for each.",
                *_rows(rows, WAVES),
            ),
            step(
                "The vector of a position is added to the embedding of the word that stands there. "
                "The word [1 2 3 4] at position 1:",
                "[" + " ".join(decimal(number) for number in added[0].tolist()) + "]",
            ),
            step(
                "As the lecture's general formula has it, with i in every exponent, the cosines "
                "would turn at speeds of their own.",
                *_rows(written, WRITTEN),
            ),
        ),
        numbers={
            "size": SIZE,
            "encodings": plain(rows),
            "waves": list(WAVES),
            "word_at_position_1": plain(added[0]),
            "binary": counter,
            "as_written": {"encodings": plain(written), "waves": list(WRITTEN)},
        },
        slip=(
            "the general formula writes 10000^(i/d) for sine and cosine alike, which for d = 4 "
            "gives cos(pos/10) and cos(pos/1000); the lecture's own example, and the paper, use "
            "the even index 2k for both: cos(pos) and cos(pos/100). So does regard."
        ),
        curves=(
            Curves(
                title="Four dimensions over twenty positions",
                x_label="position",
                y_label="encoding",
                x=tuple(float(position) for position in range(DRAWN)),
                series={
                    wave: tuple(plain(values)) for wave, values in zip(WAVES, drawn.T, strict=True)
                },
            ),
        ),
    )


def _rows(encodings: Tensor, waves: tuple[str, ...]) -> tuple[str, ...]:
    return table(
        [
            ("pos", *waves),
            *(
                (str(position), *(decimal(number) for number in row))
                for position, row in enumerate(encodings.tolist())
            ),
        ]
    )
