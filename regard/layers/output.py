"""From features to a loss over a vocabulary, without ever holding all the logits.

A word model's logits are its largest tensor by far: 64 × 128 positions over 33,278 words are a
gigabyte, and the usual way keeps them and their gradient. Here they are made for some positions
at a time, and what the gradient needs is computed while they are at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
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
        inputs = (flat.to(weight.dtype), weight, bias, wanted, label_smoothing)
        # Asked here, since inside an autograd function inputs seem to need gradients even under
        # no_grad, and the gradients are two thirds of the work.
        if torch.is_grad_enabled() and any(_learned(x) for x in (features, weight, bias)):
            return _LinearCrossEntropy.apply(*inputs)  # type: ignore[no-untyped-call]
        return _summed([loss for *_, loss in _chunks(*inputs)], inputs[0])


class _LinearCrossEntropy(torch.autograd.Function):
    """The loss, and its gradients computed along with it."""

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
    ) -> Tensor:
        needs_features, needs_weight, needs_bias, *_ = ctx.needs_input_grad
        to_features = torch.empty_like(features) if needs_features else None
        to_weight = torch.zeros_like(weight) if needs_weight else None
        to_bias = torch.zeros_like(bias) if bias is not None and needs_bias else None
        losses = []
        for rows, likely, loss in _chunks(features, weight, bias, targets, smoothing):
            losses.append(loss)
            slope = _slope(likely, targets[rows].unsqueeze(-1), smoothing)  # (rows, vocabulary)
            if to_features is not None:
                torch.mm(slope, weight, out=to_features[rows])
            if to_weight is not None:
                to_weight.addmm_(slope.T, features[rows])
            if to_bias is not None:
                to_bias += slope.sum(dim=0)
        ctx.save_for_backward(to_features, to_weight, to_bias)
        return _summed(losses, features)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():  # under create_graph
            raise RuntimeError(
                "linear_cross_entropy has no second derivative: create_graph must be False"
            )
        # Not in place: a graph that is kept needs them again.
        return (*(g if g is None else g * upstream for g in ctx.saved_tensors), None, None)


def _learned(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.requires_grad


def _chunks(
    features: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Some rows at a time: which, their probabilities (rows, vocabulary), their loss summed."""
    step = max(1, CHUNK // weight.shape[0])
    for first in range(0, features.shape[0], step):
        rows = slice(first, first + step)
        wanted = targets[rows].unsqueeze(-1)
        # Unnamed, the logits are gone once they are probabilities.
        yield rows, *_probabilities(F.linear(features[rows], weight, bias), wanted, smoothing)


def _summed(losses: list[Tensor], like: Tensor) -> Tensor:
    """The loss of all chunks, added up in double precision."""
    total = torch.zeros((), dtype=torch.float64, device=like.device)
    for loss in losses:
        total += loss
    return total.to(like.dtype)


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
