"""A node: an operation, the nodes it reads, its value and its gradient.

Writing an expression builds the graph and computes it at once: `w @ x + b` is an `add` that reads
a `matmul` and b. What reads what is fixed from then on; the values of leaves may change, and
`Graph.forward` carries the change through.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from copy import deepcopy
from itertools import count
from numbers import Real
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from regard.graph.arithmetic import (
    Add,
    Divide,
    GeneralPower,
    MatMul,
    Multiply,
    Negate,
    Power,
    Subtract,
)
from regard.graph.operation import Array, Axis, Leaf, Operation
from regard.graph.reductions import Max, Mean, Sum
from regard.graph.shapes import Index, Reshape, Transpose

Operand: TypeAlias = "Node | ArrayLike"

_clock: Final = count()  # ticks at every new value, which tells an old one when it sees it


class Node:
    """One value of a computation, and ∂output/∂value once `Graph.backward` has run.

    Arrays handed out are read-only, for nodes may share their memory: set a leaf by
    `w.value = w.value - rate * w.gradient`, not in place.
    """

    __slots__ = ("_inputs", "_name", "_operation", "_time", "_value", "gradient")

    # NumPy would take `array * node` apart number by number; None lets the node answer instead.
    __array_ufunc__ = None

    def __init__(
        self, operation: Operation, inputs: tuple[Node, ...], value: Array, name: str | None
    ):
        self._operation = operation
        self._inputs = inputs
        self._name: str | None = None
        self.gradient: Array | None = None
        self.store(value)
        if name is not None:
            self.set_name(name)

    @property
    def operation(self) -> Operation:
        """What made the value; a `Leaf` for values from outside."""
        return self._operation

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes the operation reads, in its order."""
        return self._inputs

    @property
    def name(self) -> str | None:
        return self._name

    @property
    def shape(self) -> tuple[int, ...]:
        return self._value.shape

    @property
    def value(self) -> Array:
        return self._value

    @value.setter
    def value(self, value: ArrayLike) -> None:
        if not isinstance(self._operation, Leaf):
            raise ValueError(
                f"{self} is computed by {self._operation}: only the value of a leaf can be set"
            )
        array = as_array(value, self._operation.dtype, str(self))
        if self._operation.name == "parameter" and array.shape != self.shape:
            raise ValueError(
                f"parameter {self} must keep its shape {self.shape}, got {array.shape}"
            )
        self.store(array)

    @property
    def differentiable(self) -> bool:
        """False for constants, ids and masks, whose gradient stays None."""
        leaf = self._operation
        return not isinstance(leaf, Leaf) or (leaf.dtype is float and leaf.name != "constant")

    def set_name(self, name: str) -> Node:
        """Name the node and return it: `y = (w @ x + b).set_name("ŷ")`."""
        if not name or any(_is_control(letter) for letter in name):
            raise ValueError(f"a name must be one line of text, got {name!r}")
        self._name = name
        return self

    def store(self, value: Array) -> None:
        """Set the value of any node, computed or not, and note when it came."""
        value.setflags(write=False)
        self._value = value
        self._time = next(_clock)

    def compute(self) -> None:
        """Apply the operation to what the inputs hold now."""
        if self._inputs:
            self.store(evaluate(self._operation, self._inputs))

    @property
    def newer_input(self) -> Node | None:
        """An input whose value is newer than this node's own, or None."""
        return next((node for node in self._inputs if node._time > self._time), None)

    def __repr__(self) -> str:
        return f"<{self} = {self._operation}, shape {self.shape}>"

    def __str__(self) -> str:
        return self._name or f"a nameless {self._operation.name}"

    def __add__(self, other: Operand) -> Node:
        return apply(Add(), self, other)

    def __radd__(self, other: ArrayLike) -> Node:
        return apply(Add(), other, self)

    def __sub__(self, other: Operand) -> Node:
        return apply(Subtract(), self, other)

    def __rsub__(self, other: ArrayLike) -> Node:
        return apply(Subtract(), other, self)

    def __mul__(self, other: Operand) -> Node:
        return apply(Multiply(), self, other)

    def __rmul__(self, other: ArrayLike) -> Node:
        return apply(Multiply(), other, self)

    def __truediv__(self, other: Operand) -> Node:
        return apply(Divide(), self, other)

    def __rtruediv__(self, other: ArrayLike) -> Node:
        return apply(Divide(), other, self)

    def __pow__(self, exponent: Operand) -> Node:
        # A plain number needs no node of its own, and its gradient would ask for ln of a base
        # that may well be negative.
        if isinstance(exponent, Real):
            return apply(Power(float(exponent)), self)
        return apply(GeneralPower(), self, exponent)

    def __rpow__(self, base: ArrayLike) -> Node:
        return apply(GeneralPower(), base, self)

    def __matmul__(self, other: Operand) -> Node:
        return apply(MatMul(), self, other)

    def __rmatmul__(self, other: ArrayLike) -> Node:
        return apply(MatMul(), other, self)

    def __neg__(self) -> Node:
        return apply(Negate(), self)

    def __getitem__(self, index: Any) -> Node:
        if any(isinstance(part, Node) for part in (index if isinstance(index, tuple) else [index])):
            raise ValueError(
                f"an index of {self} must be made of integers, slices and arrays, got a node: "
                "embedding(table, ids) reads rows by a node"
            )
        # A copy, since a list or array of indices may change before backward needs it.
        return apply(Index(deepcopy(index)), self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"{self} is a single number and has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Node]:
        return (self[i] for i in range(len(self)))

    def sum(self, axis: Axis = None, keepdims: bool = False) -> Node:
        return apply(Sum(axis, keepdims), self)

    def mean(self, axis: Axis = None, keepdims: bool = False) -> Node:
        return apply(Mean(axis, keepdims), self)

    def max(self, axis: Axis = None, keepdims: bool = False) -> Node:
        return apply(Max(axis, keepdims), self)

    def reshape(self, *shape: int) -> Node:
        return apply(Reshape(shape), self)

    def transpose(self, *axes: int) -> Node:
        """The axes in another order; reversed when none are named."""
        return apply(Transpose(axes or tuple(reversed(range(len(self.shape))))), self)

    @property
    def mT(self) -> Node:  # noqa: N802 - as NumPy and torch call it
        """The last two axes swapped."""
        *leading, rows, columns = range(max(len(self.shape), 2))
        return self.transpose(*leading, columns, rows)


def data(name: str, value: ArrayLike, dtype: type[float] | type[int] | type[bool] = float) -> Node:
    """A leaf of numbers, ids (`dtype=int`) or a mask (`dtype=bool`). Its value may be set again."""
    return Node(Leaf("data", dtype), (), as_array(value, dtype, name), name)


def parameter(name: str, value: ArrayLike) -> Node:
    """A leaf of numbers to learn. Its value may be set again, in the same shape."""
    return Node(Leaf("parameter"), (), as_array(value, float, name), name)


def constant(
    value: ArrayLike,
    name: str | None = None,
    dtype: type[float] | type[int] | type[bool] = float,
) -> Node:
    """A leaf without a gradient. Plain numbers in an expression become constants."""
    return Node(Leaf("constant", dtype), (), as_array(value, dtype, name or "a constant"), name)


def apply(operation: Operation, *inputs: Operand) -> Node:
    """Make the node of `operation` on `inputs`; what is no node becomes a constant."""
    nodes = tuple(node if isinstance(node, Node) else constant(node) for node in inputs)
    return Node(operation, nodes, evaluate(operation, nodes), None)


def evaluate(operation: Operation, inputs: tuple[Node, ...]) -> Array:
    """Compute `operation`, or raise a ValueError that names the inputs and their shapes."""
    try:
        value = operation.forward(*(node.value for node in inputs))
    except (ValueError, IndexError) as error:
        shapes = ", ".join(f"{node} {node.shape}" for node in inputs)
        raise ValueError(f"{operation} of {shapes}: {operation.needs or error}") from error
    return np.asarray(value, dtype=float)


_KINDS = {float: "biuf", int: "iu", bool: "b"}
_WORDS = {float: "numbers", int: "integers", bool: "True or False"}


def as_array(value: ArrayLike, dtype: type[float] | type[int] | type[bool], name: str) -> Array:
    """Copy a leaf's value into an array of `dtype`; entries of another kind are refused."""
    try:
        array = np.array(value)
    except ValueError as error:
        raise ValueError(f"the value of {name} must be one array: {error}") from error
    if array.dtype.kind not in _KINDS[dtype]:
        raise ValueError(
            f"the value of {name} must be {_WORDS[dtype]}, got an array of {array.dtype}"
        )
    return array.astype(dtype)


def _is_control(letter: str) -> bool:
    """Control characters and line ends; neither a listing nor an SVG file can hold them."""
    return unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") or letter in "\ufffe\uffff"
