"""Many numbers into fewer: sum, mean and maximum over chosen axes, or over all of them."""

from dataclasses import dataclass

import numpy as np

from regard.graph.operation import Array, Axis, Operation


@dataclass(frozen=True, eq=False)
class Reduction(Operation):
    """An operation over some axes, or all; its gradient is expanded back to them."""

    axis: Axis = None
    keepdims: bool = False

    def expand(self, reduced: Array, x: Array) -> Array:
        """Repeat a reduced array along the axes it lost, back to the shape of x."""
        if self.axis is not None and not self.keepdims:
            reduced = np.expand_dims(reduced, self.axis)
        return np.broadcast_to(reduced, x.shape)


@dataclass(frozen=True, eq=False)
class Sum(Reduction):
    """y = Σᵢ xᵢ,  x̄ᵢ = ȳ"""

    name = "sum"

    def forward(self, x: Array) -> Array:
        return np.asarray(x.sum(axis=self.axis, keepdims=self.keepdims))

    def backward(self, gradient: Array, y: Array, x: Array) -> tuple[Array]:
        return (self.expand(gradient, x),)


@dataclass(frozen=True, eq=False)
class Mean(Reduction):
    """y = Σᵢ xᵢ / n,  x̄ᵢ = ȳ / n"""

    name = "mean"

    def forward(self, x: Array) -> Array:
        if x.size == 0:
            raise ValueError("there must be at least one number to take the mean of")
        return np.asarray(x.mean(axis=self.axis, keepdims=self.keepdims))

    def backward(self, gradient: Array, y: Array, x: Array) -> tuple[Array]:
        return (self.expand(gradient * (y.size / x.size), x),)


@dataclass(frozen=True, eq=False)
class Max(Reduction):
    """y = maxᵢ xᵢ,  x̄ᵢ = ȳ / n where xᵢ is one of the n largest, else 0"""

    name = "max"

    def forward(self, x: Array) -> Array:
        return np.asarray(x.max(axis=self.axis, keepdims=self.keepdims))

    def backward(self, gradient: Array, y: Array, x: Array) -> tuple[Array]:
        largest = x == self.expand(y, x)
        ties = largest.sum(axis=self.axis, keepdims=True)
        return (np.where(largest, self.expand(gradient, x) / ties, 0.0),)
