"""Functions that make nodes: exp, softmax, stack, …; the formulas stand with the operations."""

from collections.abc import Sequence

import numpy as np

from regard.graph import activations, selection, shapes
from regard.graph.node import Node, Operand, apply, constant
from regard.graph.operation import Operation


def exp(x: Operand) -> Node:
    return apply(activations.Exp(), x)


def log(x: Operand) -> Node:
    return apply(activations.Log(), x)


def sqrt(x: Operand) -> Node:
    return apply(activations.Sqrt(), x)


def tanh(x: Operand) -> Node:
    return apply(activations.Tanh(), x)


def sigmoid(x: Operand) -> Node:
    return apply(activations.Sigmoid(), x)


def relu(x: Operand) -> Node:
    return apply(activations.Relu(), x)


def softmax(x: Operand, axis: int = -1) -> Node:
    return apply(activations.Softmax(axis), x)


def log_softmax(x: Operand, axis: int = -1) -> Node:
    return apply(activations.LogSoftmax(axis), x)


def concatenate(parts: Sequence[Operand], axis: int = 0) -> Node:
    """Parts side by side along an axis they have."""
    return _join(shapes.Concatenate(axis), parts)


def stack(parts: Sequence[Operand], axis: int = 0) -> Node:
    """Parts along a new axis."""
    return _join(shapes.Stack(axis), parts)


def embedding(table: Operand, ids: Operand) -> Node:
    """The rows of `table` at `ids`."""
    return apply(selection.Embedding(), table, _as_node("ids", ids, int))


def cross_entropy(logits: Operand, ids: Operand) -> Node:
    """The mean of −ln softmax(logits)[id] over all rows of logits."""
    return apply(selection.CrossEntropy(), logits, _as_node("ids", ids, int))


def where(mask: Operand, first: Operand, second: Operand) -> Node:
    """`first` where the mask is True, `second` elsewhere.

    Scores nobody may look at are hidden by `where(mask, scores, -inf)` before the softmax.
    """
    return apply(selection.Where(), _as_node("mask", mask, bool), first, second)


def _join(operation: Operation, parts: Sequence[Operand]) -> Node:
    if len(parts) == 0:
        raise ValueError(f"{operation.name} needs at least one part, got none")
    return apply(operation, *parts)


def _as_node(argument: str, value: Operand, dtype: type[int] | type[bool]) -> Node:
    """A node of ints or bools; anything else is refused before it can be rounded."""
    if not isinstance(value, Node):
        return constant(value, dtype=dtype)
    if value.value.dtype != np.dtype(dtype):
        raise ValueError(
            f"{argument} must be {dtype.__name__}s, got {value} of {value.value.dtype}: "
            f"make it by data(name, value, dtype={dtype.__name__})"
        )
    return value
