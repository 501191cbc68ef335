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
        return _sum_losses([loss for *_, loss in _chunks(*inputs)], inputs[0])


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
        grad_weight = torch.zeros_like(weight) if needs_weight else None
        grad_bias = torch.zeros_like(bias) if bias is not None and needs_bias else None
        losses = []
        for rows, probs, loss in _chunks(features, weight, bias, targets, smoothing):
            losses.append(loss)
            row_targets = targets[rows].unsqueeze(-1)
            gradient = _logit_gradient(probs, row_targets, smoothing)  # (rows, vocabulary)
            if grad_features is not None:
                grad_features[rows] = matmul(gradient, weight)
            if grad_weight is not None:
                grad_weight += weight_gradient(gradient, features[rows])
            if grad_bias is not None:
                grad_bias += gradient.sum(dim=0)
        ctx.save_for_backward(grad_features, grad_weight, grad_bias)
        return _sum_losses(losses, features)

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
    """Some rows at a time: which, their probabilities (rows, vocabulary), their loss summed."""
    step = max(1, MAX_LOGITS_PER_CHUNK // weight.shape[0])
    for first in range(0, features.shape[0], step):
        rows = slice(first, first + step)
        row_targets = targets[rows].unsqueeze(-1)
        # Unnamed, the logits are gone once they are probabilities.
        yield (
            rows,
            *_softmax_and_loss(linear(features[rows], weight, bias), row_targets, smoothing),
        )


def _sum_losses(losses: list[Tensor], like: Tensor) -> Tensor:
    """The loss of all chunks, added up in double precision."""
    total = torch.zeros((), dtype=torch.float64, device=like.device)
    for loss in losses:
        total += loss
    return total.to(like.dtype)


def _softmax_and_loss(logits: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """softmax(logits), (rows, vocabulary), and the loss of these rows, summed."""
    if smoothing:
        log_probs = F.log_softmax(logits, dim=-1)
        at_target, everywhere = log_probs.gather(1, targets), log_probs.mean(dim=-1, keepdim=True)
        loss = (1 - smoothing) * at_target + smoothing * everywhere
        return log_probs.exp_(), -loss.sum(dtype=torch.float64)
    # The exponentials are taken once. Only a probability too small to be written needs its
    # logarithm the long way.
    probs = logits.softmax(dim=-1)
    at_target = probs.gather(1, targets)
    if bool((at_target >= torch.finfo(probs.dtype).tiny).all()):
        log_probs = at_target.log()
    else:
        log_probs = F.log_softmax(logits, dim=-1).gather(1, targets)
    return probs, -log_probs.sum(dtype=torch.float64)


def _logit_gradient(probs: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """d loss / d logits = p − (1 − ε) [target] − ε / V, made in place of p."""
    minus_target = torch.full_like(targets, smoothing - 1, dtype=probs.dtype)
    probs.scatter_add_(1, targets, minus_target)
    return probs.sub_(smoothing / probs.shape[1]) if smoothing else probs
