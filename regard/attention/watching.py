"""Look without touching: what every attention of a model handed back, under the path it has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn

from regard.attention.attention import Attended, Attention, Change

HEART = "heart"
"""Where a multi-head keeps its attention, which is known by the multi-head's own path."""


def attentions(model: nn.Module) -> dict[str, Attention]:
    """Every attention in `model` by its dotted path; a model that is one is "attention"."""
    found = {}
    for path, part in model.named_modules():
        if isinstance(part, Attention):
            *above, last = path.split(".")
            found[".".join(above if last == HEART else [*above, last]) or "attention"] = part
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
        if gradients and attended.kept is not None and attended.kept.requires_grad:
            attended.kept.retain_grad()
        seen[path].append(attended)

    with ExitStack() as hooks:
        for path, part in parts.items():
            if gradients:
                hooks.enter_context(changed(part, _written_out))
            hooks.enter_context(part.register_forward_hook(partial(note, path)))
        yield seen


@contextmanager
def changed(part: Attention, change: Change) -> Iterator[None]:
    """Within the `with`, `change` stands between weigh and mix."""
    part.changes.append(change)
    try:
        yield
    finally:
        # By identity and from the end: two watchers may have hung the same function there.
        places = [i for i, other in enumerate(part.changes) if other is change]
        del part.changes[places[-1]]


def _written_out(weights: Tensor, _mask: Tensor | None) -> Tensor:
    """Changes nothing, but whatever stands at the seam has every weight written out."""
    return weights
