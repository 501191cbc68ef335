"""The loss of two guesses that should agree (R-Drop), without ever holding all the logits.

What a network says under one dropout and under another are two guesses p and q of the same word:

loss = ½ (L(p) + L(q)) + α/4 (KL(p ‖ q) + KL(q ‖ p)),   L the cross-entropy

Liang et al. (2021), "R-Drop: Regularized dropout for neural networks", equation 4, halved, so that
with α = 0 it is the mean of the two losses.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.products import linear, matmul, weight_gradient

CHUNK_LOGITS = 3 << 18
"""Logits of one guess in hand at once: all that is made of them stays in the cache."""


def consistent_cross_entropy(
    guesses: tuple[Tensor, Tensor],
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    mask: Tensor,
    label_smoothing: float,
    strength: float,
) -> tuple[Tensor, Tensor]:
    """The loss above with α = strength, and the divergence ½ (KL(p ‖ q) + KL(q ‖ p)): sums.

    guesses: features (batch, position, size) of each; weight (vocabulary, size), targets (batch,
    position), mask True where a target counts.
    """
    places = mask.flatten().nonzero().squeeze(-1)
    one, other = (each.flatten(0, -2).index_select(0, places) for each in guesses)
    wanted = targets.flatten().index_select(0, places)
    settings = (wanted, label_smoothing, strength)
    loss, divergence = _Consistent.apply(one, other, weight, bias, *settings)  # type: ignore[no-untyped-call]
    return loss, divergence


class _Consistent(torch.autograd.Function):
    """The loss, and its gradients computed along with it."""

    @staticmethod
    def forward(
        ctx: Any,
        one: Tensor,
        other: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        strength: float,
    ) -> tuple[Tensor, Tensor]:
        grads = torch.empty_like(one), torch.empty_like(other)
        grad_weight = torch.zeros_like(weight)
        grad_bias = None if bias is None else torch.zeros_like(bias)
        totals = torch.zeros(2, dtype=torch.float64, device=one.device)
        step = max(1, CHUNK_LOGITS // len(weight))
        for first in range(0, len(one), step):
            rows = slice(first, first + step)
            logits = [linear(each[rows], weight, bias) for each in (one, other)]
            parts, gradients = _loss_and_gradients(logits, targets[rows], smoothing, strength)
            totals += parts
            for grad, gradient, features in zip(grads, gradients, (one, other), strict=True):
                grad[rows] = matmul(gradient, weight)
                grad_weight += weight_gradient(gradient, features[rows])
                if grad_bias is not None:
                    grad_bias += gradient.sum(dim=0)
        ctx.save_for_backward(*grads, grad_weight, grad_bias)
        loss, divergence = totals.to(one.dtype)
        ctx.mark_non_differentiable(divergence)
        return loss, divergence

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        # Not in place: a graph that is kept needs them again.
        grads = (None if grad is None else grad * upstream for grad in ctx.saved_tensors)
        return (*grads, None, None, None)


def _loss_and_gradients(
    logits: list[Tensor], targets: Tensor, smoothing: float, strength: float
) -> tuple[Tensor, list[Tensor]]:
    """What some rows add to loss and divergence, (2,), and the gradient of the loss for each
    guess's logits (row, vocabulary).

    d KL(p ‖ q) / d logits of p = p (log p − log q − KL(p ‖ q)),  d KL(q ‖ p) = p − q
    """
    log_p, log_q = (each.log_softmax(dim=-1) for each in logits)
    p, q = log_p.exp(), log_q.exp()
    losses = _cross_entropy(log_p, targets, smoothing) + _cross_entropy(log_q, targets, smoothing)
    difference = log_p.sub_(log_q)
    p_far, q_far = p * difference, q * difference.neg_()  # p (log p − log q), q (log q − log p)
    divergences = [each.sum(dim=-1, keepdim=True) for each in (p_far, q_far)]  # (row, 1)
    gradients = []
    for far, mine, theirs, divergence in zip(
        (p_far, q_far), (p, q), (q, p), divergences, strict=True
    ):
        # ½ (p − target), and α/4 of what the two divergences give.
        gradient = far.addcmul_(mine, divergence, value=-1).sub_(theirs).mul_(strength / 4)
        gradient.add_(mine, alpha=0.5 + strength / 4).sub_(smoothing / (2 * mine.shape[1]))
        minus_target = torch.full_like(targets, -0.5 * (1 - smoothing), dtype=mine.dtype)
        gradients.append(gradient.scatter_add_(1, targets[:, None], minus_target[:, None]))
    total = torch.cat(divergences).sum(dtype=torch.float64) / 2
    return torch.stack([losses / 2 + strength / 2 * total, total]), gradients


def _cross_entropy(log_probs: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """Σ (1 − ε) (−log p[target]) + ε · mean(−log p), as torch's own"""
    at_target = log_probs.gather(1, targets[:, None]).sum(dtype=torch.float64)
    if not smoothing:
        return -at_target
    everywhere = log_probs.sum(dtype=torch.float64) / log_probs.shape[1]
    return -(1 - smoothing) * at_target - smoothing * everywhere
