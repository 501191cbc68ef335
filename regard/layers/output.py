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

from regard.products import linear, matmul, weight_gradient

MAX_LOGITS_PER_CHUNK = 1 << 22
"""Logits in hand at once: 16 MB of float32."""
CHUNK_LOGITS, CHUNK_ROWS = 3 << 19, 256
"""As many as stay in the cache, but rows enough that a product is worth its reading of weights."""


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
    flat, flat_targets = features.flatten(0, -2), targets.flatten()
    if mask is not None and not bool(mask.all()):
        positions = mask.flatten().nonzero().squeeze(-1)
        flat, flat_targets = (
            flat.index_select(0, positions),
            flat_targets.index_select(0, positions),
        )
    with torch.autocast(flat.device.type, enabled=False):
        inputs = (flat.to(weight.dtype), weight, bias, flat_targets, label_smoothing)
        # Asked here, since inside an autograd function inputs seem to need gradients even under
        # no_grad, and the gradients are two thirds of the work.
        if torch.is_grad_enabled() and any(_requires_grad(x) for x in (features, weight, bias)):
            return _LinearCrossEntropy.apply(*inputs)  # type: ignore[no-untyped-call]
        losses = [loss for *_, loss in _chunks(*inputs)]
        return _sum_losses(losses, *inputs[:3], label_smoothing)


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
        grad_features = torch.empty_like(features) if needs_features else None
        grad_weight: Tensor | None = None
        grad_bias = torch.zeros_like(bias) if bias is not None and needs_bias else None
        losses = []
        for rows, probs, loss in _chunks(features, weight, bias, targets, smoothing):
            losses.append(loss)
            # d loss / d logits = p − (1 − ε) [target] − ε / V, made in place of p. The last term is
            # one number, and what it adds to the gradients is added at the end.
            row_targets = targets[rows].unsqueeze(-1)
            minus_target = torch.full_like(row_targets, smoothing - 1, dtype=probs.dtype)
            gradient = probs.scatter_add_(1, row_targets, minus_target)  # (rows, vocabulary)
            if grad_features is not None:
                grad_features[rows] = matmul(gradient, weight)
            if needs_weight:
                part = weight_gradient(gradient, features[rows])
                grad_weight = part if grad_weight is None else grad_weight.add_(part)
            if grad_bias is not None:
                grad_bias += gradient.sum(dim=0)
        if needs_weight:
            grad_weight = torch.zeros_like(weight) if grad_weight is None else grad_weight
            grad_weight = grad_weight.sub_(features.sum(dim=0) * (smoothing / len(weight)))
            grad_weight = grad_weight.contiguous()
        if grad_features is not None:
            grad_features -= smoothing * weight.mean(dim=0)
        if grad_bias is not None:
            grad_bias -= smoothing * len(features) / len(weight)
        ctx.save_for_backward(grad_features, grad_weight, grad_bias)
        return _sum_losses(losses, features, weight, bias, smoothing)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():  # under create_graph
            raise RuntimeError(
                "linear_cross_entropy has no second derivative: create_graph must be False"
            )
        # Not in place: a graph that is kept needs them again.
        return (*(g if g is None else g * upstream for g in ctx.saved_tensors), None, None)


def _requires_grad(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.requires_grad


def _chunks(
    features: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Some rows at a time: which, their probabilities (rows, vocabulary), and what they add to the
    loss but for ε · mean(logits)."""
    vocabulary = len(weight)
    step = min(MAX_LOGITS_PER_CHUNK // vocabulary, max(CHUNK_ROWS, CHUNK_LOGITS // vocabulary))
    step = max(1, step)
    for first in range(0, len(features), step):
        rows = slice(first, first + step)
        row_targets = targets[rows].unsqueeze(-1)
        logits = linear(features[rows], weight, bias)
        probs, losses = _softmax_and_losses(logits, row_targets)
        if smoothing:
            losses = losses + smoothing * logits.gather(1, row_targets)
        yield rows, probs, losses.sum(dtype=torch.float64)


def _softmax_and_losses(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """softmax(logits), (rows, vocabulary), and −log p[target], (rows, 1)."""
    # The exponentials are taken once. Only a probability too small to be written needs its
    # logarithm the long way.
    probs = logits.softmax(dim=-1)
    at_target = probs.gather(1, targets)
    if bool((at_target >= torch.finfo(probs.dtype).tiny).all()):
        return probs, -at_target.log()
    return probs, -F.log_softmax(logits, dim=-1).gather(1, targets)


def _sum_losses(
    losses: list[Tensor], features: Tensor, weight: Tensor, bias: Tensor | None, smoothing: float
) -> Tensor:
    """The loss of all chunks, added up in double precision.

    (1 − ε) (−log p[target]) + ε · mean(−log p) = −log p[target] + ε (logit[target] − mean(logits)).
    The mean of the logits is the logit of the mean weight, so none of them is looked at for it.
    """
    total = torch.zeros((), dtype=torch.float64, device=features.device)
    for loss in losses:
        total += loss
    if smoothing:
        exact = torch.float64
        means = features.sum(dim=0, dtype=exact) @ weight.mean(dim=0, dtype=exact)
        if bias is not None:
            means = means + len(features) * bias.mean(dtype=exact)
        total -= smoothing * means
    return total.to(features.dtype)
