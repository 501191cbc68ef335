"""What is to be made small. Objectives know losses and no paper's name."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from regard.data.batches import Pairs, Words
from regard.layers.output import linear_cross_entropy


def next_word(model: Any, batch: Words, state: Any, label_smoothing: float) -> tuple[Tensor, Any]:
    """−Σ log p(word | words before it). The logits of a large vocabulary never exist whole."""
    features, state = model.features(batch, state)
    output = model.output
    loss = linear_cross_entropy(
        features, output.weight, output.bias, batch.targets, batch.mask, label_smoothing
    )
    return loss, state


def next_target_word(model: Any, batch: Pairs, label_smoothing: float) -> Tensor:
    """−Σ log p(target word | source, target words before it)."""
    logits = model(batch)[batch.target_mask]  # (target words, vocabulary)
    wanted = batch.target_output[batch.target_mask]
    return F.cross_entropy(logits, wanted, label_smoothing=label_smoothing, reduction="sum")


class Objective(nn.Module):
    """A model with its loss: what is trained, and what DDP and FSDP wrap.

    They only listen to `forward`, and a model's own forward knows no loss.
    """

    def __init__(self, model: nn.Module, label_smoothing: float = 0.0):
        super().__init__()
        self.model, self.label_smoothing = model, label_smoothing
        # Else a model that is in use would be put into training by whoever scores it.
        self.training = model.training

    def forward(self, batch: Words | Pairs, state: Any = None) -> tuple[Tensor, Any]:
        """The loss summed over the targets that count, in nats, and what to carry on.

        In evaluation nothing is smoothed: perplexity is about the words themselves.
        """
        smoothing = self.label_smoothing if self.training else 0.0
        if isinstance(batch, Pairs):
            return next_target_word(self.model, batch, smoothing), None
        return next_word(self.model, batch, state, smoothing)
