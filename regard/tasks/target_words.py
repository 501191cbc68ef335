"""What a translator is trained on: the words of the target, each after those before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from regard.data.batches import Pairs
from regard.layers.consistent import consistent_cross_entropy
from regard.layers.output import linear_cross_entropy
from regard.tasks.objective import Objective, Outcome, Sum


class NextTargetWord(Objective[Pairs]):
    """loss = −Σ log p(target word | source, target words before it). The logits of a large
    vocabulary never exist whole."""

    def __init__(self, model: nn.Module, label_smoothing: float = 0.0):
        super().__init__(model)
        self.label_smoothing = label_smoothing

    def forward(self, batch: Pairs, state: Any = None) -> Outcome:
        features, _ = self.model.features(batch)  # (batch, target, features)
        output = self.model.output
        smoothing = self.label_smoothing if self.training else 0.0
        loss = linear_cross_entropy(
            features, output.weight, output.bias, batch.target_output, batch.loss_mask, smoothing
        )
        return Outcome({"loss": loss})


class ConsistentTargetWord(NextTargetWord):
    """The same of two guesses, and how far they are apart: see `regard.layers.consistent`.

    The first steps may do without: until a model knows something, agreeing teaches it little and
    takes twice the time.
    """

    steps: Tensor

    def __init__(
        self, model: nn.Module, label_smoothing: float, strength: float, first_step: int = 0
    ):
        super().__init__(model, label_smoothing)
        self.strength, self.first_step = strength, first_step
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, batch: Pairs, state: Any = None) -> Outcome:
        if not self.training or self.steps < self.first_step:
            return super().forward(batch, state)
        output = self.model.output
        loss, divergence = consistent_cross_entropy(
            (self.model.features(batch)[0], self.model.features(batch)[0]),
            output.weight,
            output.bias,
            batch.target_output,
            batch.loss_mask,
            self.label_smoothing,
            self.strength,
        )
        return Outcome({"loss": loss}, {"divergence": Sum(divergence, batch.tokens)})

    def finish_step(self, means: Mapping[str, float]) -> None:
        self.steps += 1
