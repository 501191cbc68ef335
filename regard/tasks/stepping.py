"""A model that says a next word, taken step by step: what `verify` compares whole runs with."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def step_through(model: Any, state: Any, ids: Tensor) -> Tensor:
    """Feed ids (batch, position) one by one from a state on; (batch, position, vocabulary)."""
    steps = []
    for column in ids.unbind(dim=1):
        logits, state = model.step(column, state)
        steps.append(logits)
    return torch.stack(steps, dim=1)


def random_ids(size: int, shape: tuple[int, int], seed: int) -> Tensor:
    """Ids of a vocabulary, for models to be tried on."""
    return torch.randint(size, shape, generator=torch.Generator().manual_seed(seed))
