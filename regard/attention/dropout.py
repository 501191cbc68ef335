"""Dropout, with random numbers that cost little on a CPU."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

RATE_LEVELS = 1 << 16  # 16 random bits for every number


def drop(inputs: Tensor, rate: float) -> Tensor:
    """y = x ⊙ m / (1 − rate), where m is 0 with probability `rate`, else 1

    On a CPU the random numbers cost more than all the rest, since torch asks the generator once a
    number. Here 64 random bits serve four numbers, which is about three times as fast. The
    rate is rounded to a multiple of 2⁻¹⁶, and the division is by the share really kept, so the mean
    is exact.
    """
    if rate == 0.0:
        return inputs
    if not inputs.is_cpu or torch.compiler.is_compiling():
        return F.dropout(inputs, rate)  # other devices, and compiled code, have a fast one
    return inputs * _draw_factors(inputs, rate)


def _draw_factors(like: Tensor, rate: float) -> Tensor:
    """For every number in `like` 0 with probability `rate`, else 1 / (1 − rate)."""
    dropped = min(round(rate * RATE_LEVELS), RATE_LEVELS - 1)
    count = like.numel()
    bits = torch.empty((count + 3) // 4, dtype=torch.int64)
    bits.random_(-(2**63), None)  # all 64 of them; by default the sign would always be +
    draws = bits.view(torch.int16)[:count].view(like.shape)  # each from −32,768 to 32,767
    # Straight to numbers: a boolean mask in between, or torch.where, costs more than the draws.
    factors = torch.empty(like.shape, dtype=like.dtype)
    torch.ge(draws, dropped - RATE_LEVELS // 2, out=factors)
    return factors.mul_(RATE_LEVELS / (RATE_LEVELS - dropped))
