"""Record from outside what every attention of a model returns, under its dotted path."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn

from regard.attention.attention import Attended, Attention, Change
from regard.attention.heads import MultiHead


def attentions(model: nn.Module) -> dict[str, Attention]:
    """Every attention in `model` by its dotted path; a model that is one is "attention".

    The attention inside a multi-head is known by the multi-head's own path.
    """
    found = {}
    for path, part in model.named_modules():
        if isinstance(part, Attention):
            parent = path.rpartition(".")[0]
            owner = model.get_submodule(parent)
            inside = isinstance(owner, MultiHead) and owner.attention is part
            found[(parent if inside else path) or "attention"] = part
    return found


@contextmanager
def watch(model: nn.Module, gradients: bool = False) -> Iterator[dict[str, list[Attended]]]:
    """Record what every attention in `model` returns, call by call.

    with watch(model) as seen:
        model(batch)
    seen["decoder.attention"][-1].weights  # computed now, since now somebody asks

    With `gradients` the weights are written out during the forward pass and keep their gradient:
    after `loss.backward()` it is in `seen[path][-1].weights.grad`.
    """
    parts = attentions(model)
    seen: dict[str, list[Attended]] = {path: [] for path in parts}

    def record(path: str, _part: nn.Module, _inputs: Any, attended: Attended) -> None:
        weights = attended.stored_weights
        if gradients and weights is not None and weights.requires_grad:
            weights.retain_grad()
        seen[path].append(attended)

    with ExitStack() as hooks:
        for path, part in parts.items():
            if gradients:
                hooks.enter_context(insert_change(part, _unchanged))
            hooks.enter_context(part.register_forward_hook(partial(record, path)))
        yield seen


@contextmanager
def insert_change(part: Attention, change: Change) -> Iterator[None]:
    """Within the `with`, `change` is applied between weigh and mix."""
    part.changes.append(change)
    try:
        yield
    finally:
        # By identity and from the end: two watchers may have inserted the same function.
        indices = [i for i, other in enumerate(part.changes) if other is change]
        del part.changes[indices[-1]]


def _unchanged(weights: Tensor, _mask: Tensor | None) -> Tensor:
    """Changes nothing; that there is a change at all makes the attention store its weights."""
    return weights
