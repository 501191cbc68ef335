"""From features to a loss over a vocabulary, without ever holding all the logits.

A word model's logits are its largest tensor by far: 64 × 128 positions over 33,278 words are a
gigabyte, and the usual way keeps them and their gradient. Here they are made for some positions
at a time, and what the gradient needs is computed while they are at hand.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

CHUNK = 1 << 22
"""Logits in hand at once: 16 MB of float32; smaller pieces make the products slower."""


def linear_cross_entropy(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    mask: Tensor | None = None,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Σ (1 − ε) (−log p[target]) + ε · mean(−log p),  p = softmax(W x + b)

    The sum, not the mean, over positions that count, in nats. features (batch, position, size),
    weight (vocabulary, size), targets (batch, position), mask True where a target counts.
    Smoothing as in Szegedy et al. (2016), section 7.
    """
    flat, wanted = features.flatten(0, -2), targets.flatten()
    if mask is not None and not bool(mask.all()):
        counted = mask.flatten().nonzero().squeeze(-1)
        flat, wanted = flat.index_select(0, counted), wanted.index_select(0, counted)
    with torch.autocast(flat.device.type, enabled=False):
        flat = flat.to(weight.dtype)
        return _LinearCrossEntropy.apply(flat, weight, bias, wanted, label_smoothing)  # type: ignore[no-untyped-call]


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
    ) -> Tensor:
        learning = any(ctx.needs_input_grad)
        step = max(1, CHUNK // weight.shape[0])
        loss = torch.zeros((), dtype=torch.float64, device=features.device)
        to_features = torch.empty_like(features) if learning else features
        to_weight = torch.zeros_like(weight) if learning else weight
        to_bias = torch.zeros_like(bias) if learning and bias is not None else None
        for first in range(0, features.shape[0], step):
            rows = slice(first, first + step)
            x, wanted = features[rows], targets[rows].unsqueeze(-1)
            likely, missed = _probabilities(F.linear(x, weight, bias), wanted, smoothing)
            loss += missed
            if not learning:
                continue
            slope = _slope(likely, wanted, smoothing)  # (rows, vocabulary)
            torch.mm(slope, weight, out=to_features[rows])
            to_weight.addmm_(slope.T, x)
            if to_bias is not None:
                to_bias += slope.sum(dim=0)
        ctx.gradients = (to_features, to_weight, to_bias) if learning else None
        return loss.to(features.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        to_features, to_weight, to_bias = ctx.gradients
        ctx.gradients = None
        scaled = [g if g is None else g.mul_(upstream) for g in (to_features, to_weight, to_bias)]
        return (*scaled, None, None)


def _probabilities(logits: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """softmax(logits), (rows, vocabulary), and the loss of these rows, summed."""
    if smoothing:
        logs = F.log_softmax(logits, dim=-1)
        at_target, everywhere = logs.gather(1, targets), logs.mean(dim=-1, keepdim=True)
        loss = (1 - smoothing) * at_target + smoothing * everywhere
        return logs.exp_(), -loss.sum(dtype=torch.float64)
    # The exponentials are taken once. Only a probability too small to be written needs its
    # logarithm the long way.
    likely = logits.softmax(dim=-1)
    at_target = likely.gather(1, targets)
    written = bool((at_target >= torch.finfo(likely.dtype).tiny).all())
    logs = at_target.log() if written else F.log_softmax(logits, dim=-1).gather(1, targets)
    return likely, -logs.sum(dtype=torch.float64)


def _slope(likely: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """d loss / d logits = p − (1 − ε) [target] − ε / V, made in place of p."""
    less = torch.full_like(targets, smoothing - 1, dtype=likely.dtype)
    likely.scatter_add_(1, targets, less)
    return likely.sub_(smoothing / likely.shape[1]) if smoothing else likely
