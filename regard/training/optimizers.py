"""Optimizers by name, their state as named tensors, gradient norms and clipping."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from regard.config import TrainingConfig
from regard.tasks.objective import Objective
from regard.training.placement import shard_like


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """The optimizer a recipe names. Weight decay acts on matrices alone, and on no bias or norm."""
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


def gradient_norm(model: nn.Module) -> Tensor:
    """‖g‖ over all parameters together, and over all processes they are spread on."""
    norm = get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
    return norm.full_tensor() if isinstance(norm, DTensor) else norm


def clip_gradients(model: nn.Module, longest: float, norm: Tensor) -> None:
    """g ← g · min(1, longest / ‖g‖)

    Most steps are short enough, and then nothing is written. Pascanu, Mikolov & Bengio (2013),
    section 3.2.
    """
    if norm > longest:
        clip_grads_with_norm_(model.parameters(), longest, norm)


def parameter_names(objective: Objective[Any]) -> dict[Tensor, str]:
    """Under what a checkpoint holds a parameter: the model's as it calls them, the objective's own
    under `objective/`."""
    names: dict[Tensor, str] = {p: name for name, p in objective.model.named_parameters()}
    for name, parameter in objective.named_parameters():
        names.setdefault(parameter, f"objective/{name}")
    return names


def optimizer_tensors(
    optimizer: torch.optim.Optimizer, names: dict[Tensor, str]
) -> dict[str, Tensor]:
    """What the optimizer keeps for each parameter, momentum and the like: `name/key`."""
    return {
        f"{names[parameter]}/{key}": value
        for parameter, state in optimizer.state.items()
        for key, value in state.items()
        if isinstance(value, Tensor)
    }


def load_optimizer_tensors(
    optimizer: torch.optim.Optimizer, names: dict[Tensor, str], tensors: dict[str, Tensor]
) -> None:
    """Put back what `optimizer_tensors` gave."""
    by_name: dict[str, dict[str, Any]] = {}
    for path, value in tensors.items():
        name, _, key = path.rpartition("/")
        by_name.setdefault(name, {})[key] = value
    for parameter, name in names.items():
        if name in by_name:
            optimizer.state[parameter] = {
                key: shard_like(value, parameter) for key, value in by_name[name].items()
            }
