"""Look without touching: what every attention of a model handed back, under the path it has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn

from regard.attention.attention import Attended, Attention

HEART = "heart"
"""Where a multi-head keeps its attention, which is known by the multi-head's own path."""


def attentions(model: nn.Module) -> dict[str, Attention]:
    """Every attention in `model` by its dotted path; a model that is one is "attention"."""
    found = {}
    for path, part in model.named_modules():
        if isinstance(part, Attention):
            name = path.removesuffix(HEART).removesuffix(".")
            found[name or "attention"] = part
    return found


@contextmanager
def watch(model: nn.Module, gradients: bool = False) -> Iterator[dict[str, list[Attended]]]:
    """Keep what every attention in `model` hands back, call by call.

    with watch(model) as seen:
        model(batch)
    seen["decoder.attention"][-1].weights  # computed now, since now somebody asks

    With `gradients` the weights are written out during the forward pass and keep their gradient:
    after `loss.backward()` it is in `seen[path][-1].weights.grad`.
    """
    parts = attentions(model)
    seen: dict[str, list[Attended]] = {path: [] for path in parts}

    def note(path: str, _part: nn.Module, _inputs: Any, attended: Attended) -> None:
        seen[path].append(attended)

    with ExitStack() as hooks:
        for path, part in parts.items():
            if gradients:
                part.changes.append(_with_gradient)
                hooks.callback(_drop, part.changes, _with_gradient)
            hooks.enter_context(part.register_forward_hook(partial(note, path)))
        yield seen


def _with_gradient(weights: Tensor, _mask: Tensor | None) -> Tensor:
    if weights.requires_grad:
        weights.retain_grad()
    return weights


def _drop(changes: list[Any], change: Any) -> None:
    """Take the last one out; two watchers may have hung the same function there."""
    index = len(changes) - 1 - changes[::-1].index(change)
    del changes[index]
