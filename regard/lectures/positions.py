"""Positions as waves: PE(pos, 2k) = sin(pos / 10000^(2k/d)),  PE(pos, 2k + 1) = cos of the same

A binary counter tells positions apart by digits that flip at different speeds; sines and cosines
are the same idea made smooth.

Vaswani et al. (2017), section 3.5.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.attention import Sinusoidal, sinusoids
from regard.lectures.catalog import TITLES
from regard.lectures.formatting import decimal, decimals, fraction, table, to_list
from regard.lectures.lesson import MODELS, SEQUENCES, Lesson, step
from regard.looking import Curves

SIZE, POSITIONS_LISTED, POSITIONS_DRAWN = 4, 8, 21
BASE = 10000.0
WORD = torch.tensor([1.0, 2.0, 3.0, 4.0])


def name_waves(exponents: Sequence[int]) -> tuple[str, ...]:
    """sin pos, cos pos, sin(pos/100), …: sine and cosine by turns of pos / BASE^(exponent/d)."""
    divisors = [BASE ** (exponent / SIZE) for exponent in exponents]
    angles = [" pos" if divisor == 1 else f"(pos/{divisor:g})" for divisor in divisors]
    return tuple(f"{'cos' if i % 2 else 'sin'}{angle}" for i, angle in enumerate(angles))


WAVES = name_waves([i - i % 2 for i in range(SIZE)])
WAVES_AS_WRITTEN = name_waves(range(SIZE))


def as_written(positions: Tensor) -> Tensor:
    """The lecture's general formula: index i in the exponent of the cosine too, (position, 4)."""
    index = torch.arange(SIZE, dtype=torch.float64)
    angles = positions.unsqueeze(-1) / BASE ** (index / SIZE)
    return torch.where(index % 2 == 0, angles.sin(), angles.cos())


def lesson() -> Lesson:
    rows = sinusoids(torch.arange(POSITIONS_LISTED), SIZE)
    written = as_written(torch.arange(POSITIONS_LISTED))
    drawn = sinusoids(torch.arange(POSITIONS_DRAWN), SIZE)
    added = Sinusoidal(SIZE)(WORD.view(1, 1, -1), start=1)[0, 0]
    speeds = [fraction(BASE ** -(k / SIZE)) for k in range(0, SIZE, 2)]
    counter = [f"{position:04b}" for position in range(POSITIONS_LISTED)]
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
                f"Waves do it smoothly. With d = {SIZE} there are {len(speeds)} speeds, "
                f"1/{BASE:.0f}^(2k/{SIZE}) = {' and '.join(speeds)}, and a sine and a cosine for "
                "each.",
                *_rows(rows, WAVES),
            ),
            step(
                "The vector of a position is added to the embedding of the word that stands there. "
                f"The word {decimals(WORD)} at position 1:",
                decimals(added),
            ),
            step(
                "As the lecture's general formula has it, with i in every exponent, the cosines "
                "would turn at speeds of their own.",
                *_rows(written, WAVES_AS_WRITTEN),
            ),
        ),
        numbers={
            "size": SIZE,
            "encodings": to_list(rows),
            "waves": list(WAVES),
            "word_at_position_1": to_list(added),
            "binary": counter,
            "as_written": {"encodings": to_list(written), "waves": list(WAVES_AS_WRITTEN)},
        },
        slip=(
            f"the general formula writes {BASE:.0f}^(i/d) for sine and cosine alike, which for "
            f"d = {SIZE} gives {' and '.join(WAVES_AS_WRITTEN[1::2])}; the lecture's own example, "
            f"and the paper, use the even index 2k for both: {' and '.join(WAVES[1::2])}. So does "
            "regard."
        ),
        curves=(
            Curves(
                title=f"{SIZE} dimensions over {POSITIONS_DRAWN - 1} positions",
                x_label="position",
                y_label="encoding",
                x=tuple(float(position) for position in range(POSITIONS_DRAWN)),
                series={
                    wave: tuple(to_list(values))
                    for wave, values in zip(WAVES, drawn.T, strict=True)
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
