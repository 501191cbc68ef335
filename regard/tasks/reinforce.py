"""Learn where to look from how well it went, for attentions that look at one place by chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import Hard, HardSample, Seen, attentions, watch
from regard.data.batches import Pairs
from regard.tasks.objective import Objective, Outcome, Sum


def draws_positions(model: nn.Module) -> bool:
    """Whether an attention of the model is hard, so that a plain gradient does not reach it."""
    return any(isinstance(each.weigh, Hard) for each in attentions(model).values())


class Reinforced(Objective[Pairs]):
    """loss = −Σ_t log p(y_t | s) − Σ_t (G_t − b_t) log π(s_t) − λ Σ_t H(π_t)
    G_t = Σ_k γᵏ log p(y_{t+k} | s),  b_t = b Σ_k γᵏ,  b ← 0.9 b + 0.1 mean log p

    A place s_t drawn from π_t is made likelier if the words from there on went better than usual;
    G and b count as numbers here and pass no gradient. The words before s_t do not depend on it, so
    leaving them out keeps the estimate right and its variance small. With γ = 0 a place answers for
    its own word alone, which is exact where what was read does not reach later words.

    The record tells the estimator's variance: the mean of ‖(G − b) ∇ log π‖², taken in the scores
    and so without the square of its mean, which is small beside it.

    Xu et al. (2015), section 4.1, equations 11 and 12; Williams (1992).
    """

    weights: ClassVar[Mapping[str, float]] = {"loss": 1.0, "reinforce": 1.0, "entropy": 1.0}
    baseline: Tensor

    def __init__(
        self,
        model: nn.Module,
        label_smoothing: float = 0.0,
        discount: float = 1.0,
        entropy_bonus: float = 0.01,
    ):
        super().__init__(model)
        self.label_smoothing, self.discount = label_smoothing, discount
        self.entropy_bonus = entropy_bonus
        self.register_buffer("baseline", torch.zeros(()))

    def counts(self, batch: Pairs) -> dict[str, int]:
        return dict.fromkeys(self.weights, batch.tokens)

    def loss(self, means: Mapping[str, float]) -> float:
        """That of the words; the other parts have a gradient worth following, but no such value."""
        return means["loss"]

    def forward(self, batch: Pairs, state: object = None) -> Outcome:
        with watch(self.model) as seen:
            logits = self.model(batch)  # (batch, target, vocabulary)
        log_p = logits.log_softmax(dim=-1)
        own = log_p.detach().gather(-1, batch.target_output.unsqueeze(-1)).squeeze(-1)
        rewards = own.masked_fill(~batch.loss_mask, 0.0)  # (batch, target)
        advantages = self._advantages(rewards, batch.loss_mask)
        policy = entropy = variance = rewards.new_zeros(())
        for sample in _samples(seen):
            policy = policy - (advantages * sample.log_probability).sum()
            entropy = entropy + (sample.entropy * batch.loss_mask).sum()
            variance = variance + (advantages.square() * _score_gradient_square(sample)).sum()
        loss = self._cross_entropy(logits, batch)
        parts = {"loss": loss, "reinforce": policy, "entropy": -self.entropy_bonus * entropy}
        reports = {
            "reward": Sum(rewards.sum(), batch.tokens),
            "estimator_variance": Sum(variance, batch.tokens),
        }
        return Outcome(parts, reports)

    def finish_step(self, means: Mapping[str, float]) -> None:
        self.baseline.mul_(0.9).add_(0.1 * means["reward"])

    def _cross_entropy(self, logits: Tensor, batch: Pairs) -> Tensor:
        smoothing = self.label_smoothing if self.training else 0.0
        real, wanted = logits[batch.loss_mask], batch.target_output[batch.loss_mask]
        return F.cross_entropy(real, wanted, label_smoothing=smoothing, reduction="sum")

    def _advantages(self, rewards: Tensor, mask: Tensor) -> Tensor:
        """(batch, target), by how much more than usual came from each word on."""
        surplus = (rewards - self.baseline).masked_fill(~mask, 0.0)
        if self.discount == 0.0:
            return surplus
        total, totals = torch.zeros_like(surplus[:, 0]), []
        for now in reversed(surplus.unbind(dim=1)):
            total = now + self.discount * total
            totals.append(total)
        return torch.stack(totals[::-1], dim=1)


def _samples(seen: Seen) -> Iterator[HardSample]:
    """What each hard attention drew, the steps of a decoder together."""
    for calls in seen.values():
        drawn = [call.carried for call in calls if isinstance(call.carried, HardSample)]
        if drawn:
            yield _join(drawn)


def _join(samples: list[HardSample]) -> HardSample:
    """The samples of a decoder's steps as those of one call."""
    positions, log_probability, entropy = (
        torch.cat([sample[part] for sample in samples], dim=-1) for part in range(3)
    )
    distribution = torch.cat([sample.distribution for sample in samples], dim=-2)
    return HardSample(positions, log_probability, entropy, distribution)


def _score_gradient_square(sample: HardSample) -> Tensor:
    """‖∂ log π(s) / ∂ scores‖² = ‖one_hot(s) − π‖², 0 where nothing was drawn: (batch, target)"""
    pi = sample.distribution.detach()
    chosen = pi.gather(-1, sample.positions.unsqueeze(-1)).squeeze(-1)
    square = 1 - 2 * chosen + pi.square().sum(dim=-1)
    return square.masked_fill(sample.log_probability.detach() == 0, 0.0)
