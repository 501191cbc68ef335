"""Whatever a model carries from batch to batch, as plain tensors and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from torch import Tensor


def flatten_state(state: Any) -> list[Tensor]:
    """The tensors of a state made of tuples, named tuples, dataclasses, lists and None, in
    order."""
    if isinstance(state, Tensor):
        return [state]
    if isinstance(state, tuple | list):
        return [tensor for part in state for tensor in flatten_state(part)]
    if is_dataclass(state):
        return [t for f in fields(state) for t in flatten_state(getattr(state, f.name))]
    return []


def refill(state: Any, tensors: Iterator[Tensor]) -> Any:
    """A state of the same make with these tensors in it."""
    if isinstance(state, Tensor):
        tensor = next(tensors, None)
        if tensor is None or _make(tensor) != _make(state):
            raise ValueError("the checkpoint carries the state of another model")
        return tensor
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        return type(state)(*(refill(part, tensors) for part in state))
    if isinstance(state, tuple | list):
        return type(state)(refill(part, tensors) for part in state)
    if is_dataclass(state) and not isinstance(state, type):
        held = {f.name: refill(getattr(state, f.name), tensors) for f in fields(state)}
        return replace(state, **held)
    return state


def _make(tensor: Tensor) -> tuple[object, ...]:
    """What never changes from batch to batch; the middle axis may, since a memory grows."""
    return tensor.dtype, tensor.dim(), tensor.shape[:1], tensor.shape[-1:]
