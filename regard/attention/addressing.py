"""Content and location addressing: the weighing of the Neural Turing Machine."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.weighings import Weighing, masked_softmax


class Controls(NamedTuple):
    """The controller's outputs for one step of addressing, next to the key it looks for."""

    previous: Tensor  # (batch, …, query, key), the weights of the step before
    strength: Tensor  # (batch, …, query, 1), β ≥ 0: how sharply content counts
    gate: Tensor  # (batch, …, query, 1), g in [0, 1]: content against where one was
    shift: Tensor  # (batch, …, query, 2 · reach + 1), a distribution over −reach … +reach
    sharpening: Tensor  # (batch, …, query, 1), γ ≥ 1

    @classmethod
    def of(cls, raw: Tensor, previous: Tensor) -> Controls:
        """From unbounded controller outputs (…, 3 + 2 · reach + 1): β by softplus, g by sigmoid,
        the shift by softmax, γ by 1 + softplus."""
        if raw.shape[-1] < 4 or raw.shape[-1] % 2:
            raise ValueError(
                f"raw controls {tuple(raw.shape)} must end in 3 + an odd number of shifts"
            )
        strength, gate, sharpening, shift = raw.split([1, 1, 1, raw.shape[-1] - 3], dim=-1)
        return cls(
            previous,
            F.softplus(strength),
            gate.sigmoid(),
            shift.softmax(dim=-1),
            1 + F.softplus(sharpening),
        )


class Stages(NamedTuple):
    """The four stages of one addressing, each (batch, …, query, key)."""

    content: Tensor
    gated: Tensor
    shifted: Tensor
    sharpened: Tensor


class NTMAddressing(Weighing):
    """content    wᶜ = softmax(β · score)
    gate       wᵍ = g wᶜ + (1 − g) w₋₁
    shift      w̃(i) = Σⱼ wᵍ(j) s(i − j), circular
    sharpen    w(i) = w̃(i)^γ / Σⱼ w̃(j)^γ

    Find a place by what is in it, or go on from where one was, step sideways, and focus again after
    the blur of stepping. Takes `Controls` as `carried` and leaves `Stages`.

    Graves, Wayne & Danihelka (2014), section 3.3, equations 5 to 9.
    """

    def forward(
        self, scores: Tensor, mask: Tensor | None, queries: Tensor, carried: Any = None
    ) -> tuple[Tensor, Stages]:
        if not isinstance(carried, Controls):
            raise ValueError(
                f"NTMAddressing needs Controls as carried, got {type(carried).__name__}: "
                "the controller says at each step how to move"
            )
        if carried.previous.shape != scores.shape or carried.shift.shape[-1] % 2 == 0:
            raise ValueError(
                f"Controls.previous {tuple(carried.previous.shape)} must be like the scores "
                f"{tuple(scores.shape)}, and shift {tuple(carried.shift.shape)} must end in an odd "
                "number: steps back, none, and forward"
            )
        content = masked_softmax(carried.strength * scores, mask)
        gated = carried.gate * content + (1 - carried.gate) * carried.previous
        shifted = circular_shift(gated, carried.shift)
        if mask is not None:
            shifted = shifted.masked_fill(~mask, 0.0)
        sharpened = sharpen(shifted, carried.sharpening)
        return sharpened, Stages(content, gated, shifted, sharpened)


def circular_shift(weights: Tensor, shift: Tensor) -> Tensor:
    """w̃(i) = Σⱼ w(j) s(i − j): every weight moves by −reach … +reach with the shift's chances."""
    if weights.shape[-1] == 0:
        return weights
    reach = shift.shape[-1] // 2
    rolled = [weights.roll(step, dims=-1) for step in range(-reach, reach + 1)]
    return (torch.stack(rolled, dim=-1) * shift.unsqueeze(-2)).sum(dim=-1)


def sharpen(weights: Tensor, exponent: Tensor) -> Tensor:
    """w^γ / Σ w^γ; all zeros stay all zeros."""
    if weights.shape[-1] == 0:
        return weights
    is_zero = weights == 0
    # Measured from the largest, a high power leaves at least that one standing. The ones put in
    # for zeros are taken out again: a power of zero has no gradient in its exponent.
    largest = weights.detach().amax(dim=-1, keepdim=True)
    relative = (weights / largest.masked_fill(largest == 0, 1.0)).masked_fill(is_zero, 1.0)
    powered = relative.pow(exponent).masked_fill(is_zero, 0.0)
    total = powered.sum(dim=-1, keepdim=True)
    return powered / total.masked_fill(total == 0, 1.0)
