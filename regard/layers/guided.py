"""Initial weights for self-attention, so that heads begin by looking at their like and neighbours.

positions begin as waves           P[p]
a head that looks at its like      queries x A, keys y A: large where x and y are the same word
a head that looks at a neighbour   queries x A, keys (R y) A: R turns the waves of the neighbour
                                   into those of the position itself

From matrices that have nothing to do with each other a small model has to find both by chance, and
as long as it has not, a hidden word learns nothing from the words around it. All of it goes on to
be learned; nothing is fixed but the beginning.

Trockman & Kolter (2023), "Mimetic initialization of self-attention layers", begin with queries and
keys like those of trained models. Waves: Vaswani et al. (2017), section 3.5.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from regard.attention import sinusoids

FASTEST, SLOWEST = 2.0, 0.2
"""Radians that waves turn by from a position to the next: they tell places near by."""
WAVE_STD = 0.07  # of positions, so that words do not drown them
LIKE_STD, NEIGHBOUR_STD = 0.08, 0.15  # of the matrices A
MIN_NEIGHBOUR_SPEED = 0.8
"""Radians from which on a wave shows a neighbour. Slower ones hardly turn, and where words have the
same dimensions a word would look at itself."""
HEADS = (0, 0, 1, -1)
"""How far away each of the first heads of a layer begins by looking."""


def check_guided(model_size: int, heads: int) -> None:
    """Waves come in pairs, and each of the first heads has something to look at."""
    if heads < len(HEADS) or model_size % 2:
        raise ValueError(
            f"guided (True) needs {len(HEADS)} heads or more ({heads}) and an even model_size "
            f"({model_size})"
        )


@torch.no_grad()
def start_guided(positions: Tensor, projections: Iterable[Tensor], heads: int) -> None:
    """Begin so: positions (position, model), packed projections (3 · model, model)."""
    if positions.is_meta:
        return  # the outline of a model has no numbers to begin with
    count, model_size = positions.shape
    waves = make_waves(torch.arange(count, device=positions.device), model_size)
    positions.copy_(waves * (WAVE_STD / math.sqrt(0.5)))  # a sine has a variance of one half
    quick = wave_speeds(model_size) >= MIN_NEIGHBOUR_SPEED
    quick = quick.repeat_interleave(2).to(positions)  # (model,)
    for projection in projections:
        queries, keys, _ = (part.unflatten(0, (heads, -1)) for part in projection.chunk(3))
        for head, offset in enumerate(HEADS):
            matrix = torch.randn_like(queries[head])  # (size, model)
            matrix *= NEIGHBOUR_STD * quick if offset else LIKE_STD
            queries[head] = matrix
            keys[head] = matrix @ rotation(model_size, -offset).to(matrix)


def wave_speeds(size: int) -> Tensor:
    """Radians a position, one for each pair of dimensions, (size / 2,)."""
    steps = torch.arange(0, size, 2, dtype=torch.float64) / size
    return FASTEST * (SLOWEST / FASTEST) ** steps


def make_waves(positions: Tensor, size: int) -> Tensor:
    """P[p] = (sin ω₁p, cos ω₁p, sin ω₂p, …), (position, size)"""
    return sinusoids(FASTEST * positions, size, base=FASTEST / SLOWEST)


def rotation(size: int, steps: int) -> Tensor:
    """R with R P[p] = P[p + steps] for every position p, (size, size).

    Each pair of dimensions turns by an angle of its own.
    """
    sine, cosine = make_waves(torch.tensor([steps]), size)[0].view(-1, 2).unbind(1)
    blocks = torch.stack([cosine, sine, -sine, cosine], dim=1).view(-1, 2, 2)
    return torch.block_diag(*blocks)
