"""Optimizers by name, and their memory as named tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from regard.training.placement import laid_like
from regard.training.recipe import TrainingConfig


def optimizer_of(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """Weight decay acts on matrices; biases, norms and single vectors stay free of it."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if config.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=config.rate, momentum=config.momentum, fused=True)
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    return kind(groups, lr=config.rate, betas=config.betas, eps=config.epsilon, fused=True)


def shorten(model: nn.Module, longest: float) -> None:
    """g ← g · min(1, longest / ‖g‖), over all parameters together

    Most steps are short enough, and then nothing is written. Pascanu, Mikolov & Bengio (2013),
    section 3.2.
    """
    parameters = [p for p in model.parameters() if p.grad is not None]
    norm = get_total_norm([p.grad for p in parameters if p.grad is not None])
    if norm > longest:
        clip_grads_with_norm_(parameters, longest, norm)


def memory_of(optimizer: torch.optim.Optimizer, names: dict[Tensor, str]) -> dict[str, Tensor]:
    """What the optimizer remembers of each parameter: `name/key`."""
    return {
        f"{names[parameter]}/{key}": value
        for parameter, memory in optimizer.state.items()
        for key, value in memory.items()
        if isinstance(value, Tensor)
    }


def remember(
    optimizer: torch.optim.Optimizer, names: dict[Tensor, str], memory: dict[str, Tensor]
) -> None:
    """Put it back."""
    held: dict[str, dict[str, Any]] = {}
    for path, value in memory.items():
        name, _, key = path.rpartition("/")
        held.setdefault(name, {})[key] = value
    for parameter, name in names.items():
        if name in held:
            memory_here = {key: laid_like(value, parameter) for key, value in held[name].items()}
            optimizer.state[parameter] = memory_here
