"""One vector for many: means and maxima over the positions of a mask."""

from __future__ import annotations

from torch import Tensor


def mean_of_words(vectors: Tensor, mask: Tensor) -> Tensor:
    """(batch, position, size) → (batch, size), over the words of the mask; 0 without any."""
    weights = mask / mask.sum(dim=1, keepdim=True).clamp(min=1)  # (batch, position)
    return (weights.unsqueeze(1).to(vectors.dtype) @ vectors).squeeze(1)


def maximum_of_words(vectors: Tensor, mask: Tensor) -> Tensor:
    """The largest number in each dimension, over the words of the mask; 0 without any."""
    if vectors.shape[1] == 0:
        return vectors.new_zeros(len(vectors), vectors.shape[-1])
    hidden = vectors.masked_fill(~mask.unsqueeze(-1), float("-inf"))
    return hidden.amax(dim=1).masked_fill(~mask.any(dim=1, keepdim=True), 0.0)
