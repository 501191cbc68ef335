"""Reshaping, transposing, joining and indexing: numbers move, and gradients move back."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.graph.operation import Array, Operation


@dataclass(frozen=True, eq=False)
class Reshape(Operation):
    """y = x in another shape,  x̄ = ȳ in the old one"""

    name = "reshape"
    shape: tuple[int, ...]

    @property
    def settings(self) -> str:
        return str(self.shape)

    def forward(self, x: Array) -> Array:
        return x.reshape(self.shape)

    def backward(self, gradient: Array, y: Array, x: Array) -> tuple[Array]:
        return (gradient.reshape(x.shape),)


@dataclass(frozen=True, eq=False)
class Transpose(Operation):
    """y = x with its axes in another order,  x̄ = ȳ with the order undone"""

    name = "transpose"
    axes: tuple[int, ...]

    @property
    def settings(self) -> str:
        return "" if self.axes == (1, 0) else str(self.axes)

    def forward(self, x: Array) -> Array:
        return x.transpose(self.axes)

    def backward(self, gradient: Array, y: Array, x: Array) -> tuple[Array]:
        return (gradient.transpose(np.argsort([axis % x.ndim for axis in self.axes])),)


@dataclass(frozen=True, eq=False)
class Concatenate(Operation):
    """y = a and b side by side along an axis,  ā and b̄ = ȳ cut where they met"""

    name = "concatenate"
    needs = "the shapes must be equal but for the axis they are joined along"
    axis: int = 0

    def forward(self, *parts: Array) -> Array:
        return np.concatenate(parts, axis=self.axis)

    def backward(self, gradient: Array, y: Array, *parts: Array) -> tuple[Array, ...]:
        cuts = np.cumsum([part.shape[self.axis] for part in parts[:-1]])
        return tuple(np.split(gradient, cuts, axis=self.axis))


@dataclass(frozen=True, eq=False)
class Stack(Operation):
    """y = a and b along a new axis,  ā and b̄ = the slices of ȳ"""

    name = "stack"
    needs = "the shapes must be equal, and the axis one of the result's"
    axis: int = 0

    def forward(self, *parts: Array) -> Array:
        return np.stack(parts, axis=self.axis)

    def backward(self, gradient: Array, y: Array, *parts: Array) -> tuple[Array, ...]:
        return tuple(np.moveaxis(gradient, self.axis, 0))


@dataclass(frozen=True, eq=False)
class Index(Operation):
    """y = x[i],  x̄[i] += ȳ, and 0 where nobody looked"""

    name = "index"
    index: Any

    @property
    def settings(self) -> str:
        parts = self.index if isinstance(self.index, tuple) else (self.index,)
        return f"[{', '.join(_format_index(part) for part in parts)}]"

    def formula(self, *inputs: str) -> str:
        return inputs[0] + self.settings

    def forward(self, x: Array) -> Array:
        return np.asarray(x[self.index])

    def backward(self, gradient: Array, y: Array, x: Array) -> tuple[Array]:
        x_bar = np.zeros_like(x)
        # Not `x_bar[i] += ȳ`: an index that occurs twice would count once.
        np.add.at(x_bar, self.index, gradient)
        return (x_bar,)


def _format_index(part: Any) -> str:
    """One part of an index the way it is typed."""
    if isinstance(part, slice):
        ends = ["" if end is None else str(end) for end in (part.start, part.stop, part.step)]
        return ":".join(ends if part.step is not None else ends[:2])
    if part is Ellipsis:
        return "..."
    return str(part if np.ndim(part) == 0 else np.asarray(part).tolist())
