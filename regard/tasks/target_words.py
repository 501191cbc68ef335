"""What a translator is trained on: the words of the target, each after those before it."""

from __future__ import annotations

from typing import Any

from torch import nn

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
    """The same of two guesses, and how far they are apart: see `regard.layers.consistent`."""

    def __init__(self, model: nn.Module, label_smoothing: float, strength: float):
        super().__init__(model, label_smoothing)
        self.strength = strength

    def forward(self, batch: Pairs, state: Any = None) -> Outcome:
        if not self.training:
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
