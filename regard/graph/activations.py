"""Functions of each number by itself, and the softmax over an axis."""

from dataclasses import dataclass

import numpy as np

from regard.graph.operation import Array, Operation


class Exp(Operation):
    """y = eˣ,  x̄ = ȳ y"""

    name = "exp"

    def forward(self, x: Array) -> Array:
        return np.exp(x)

    def backward(self, gradient: Array, y: Array, x: Array) -> tuple[Array]:
        return (gradient * y,)


class Log(Operation):
    """y = ln x,  x̄ = ȳ / x"""

    name = "log"

    def forward(self, x: Array) -> Array:
        return np.log(x)

    def backward(self, gradient: Array, y: Array, x: Array) -> tuple[Array]:
        return (gradient / x,)


class Sqrt(Operation):
    """y = √x,  x̄ = ȳ / 2y"""

    name = "sqrt"

    def forward(self, x: Array) -> Array:
        return np.sqrt(x)

    def backward(self, gradient: Array, y: Array, x: Array) -> tuple[Array]:
        return (gradient / (2.0 * y),)


class Tanh(Operation):
    """y = tanh x,  x̄ = ȳ (1 − y²)"""

    name = "tanh"

    def forward(self, x: Array) -> Array:
        return np.tanh(x)

    def backward(self, gradient: Array, y: Array, x: Array) -> tuple[Array]:
        return (gradient * (1.0 - y * y),)


class Sigmoid(Operation):
    """y = 1 / (1 + e⁻ˣ),  x̄ = ȳ y (1 − y)"""

    name = "sigmoid"

    def forward(self, x: Array) -> Array:
        # ln y = −ln(e⁰ + e⁻ˣ): far below zero e⁻ˣ itself would overflow.
        return np.exp(-np.logaddexp(0.0, -x))

    def backward(self, gradient: Array, y: Array, x: Array) -> tuple[Array]:
        return (gradient * y * (1.0 - y),)


class Relu(Operation):
    """y = max(x, 0),  x̄ = ȳ where x > 0, else 0"""

    name = "relu"

    def forward(self, x: Array) -> Array:
        return np.maximum(x, 0.0)

    def backward(self, gradient: Array, y: Array, x: Array) -> tuple[Array]:
        return (np.where(x > 0, gradient, 0.0),)


@dataclass(frozen=True, eq=False)
class Softmax(Operation):
    """yᵢ = exp xᵢ / Σⱼ exp xⱼ,  x̄ᵢ = yᵢ (ȳᵢ − Σⱼ ȳⱼ yⱼ)

    All scores may rise together and nothing changes, hence the mean that is taken off ȳ. Where
    every score is −∞ (a query that may look nowhere) the weights are 0, and so is the gradient.
    """

    name = "softmax"
    axis: int = -1

    def forward(self, x: Array) -> Array:
        top = x.max(axis=self.axis, keepdims=True, initial=-np.inf)
        powers = np.exp(x - np.where(top == -np.inf, 0.0, top))
        total = powers.sum(axis=self.axis, keepdims=True)
        return np.asarray(powers / np.where(total == 0.0, 1.0, total))

    def backward(self, gradient: Array, y: Array, x: Array) -> tuple[Array]:
        return (y * (gradient - (gradient * y).sum(axis=self.axis, keepdims=True)),)


@dataclass(frozen=True, eq=False)
class LogSoftmax(Operation):
    """yᵢ = xᵢ − ln Σⱼ exp xⱼ,  x̄ᵢ = ȳᵢ − softmax(x)ᵢ Σⱼ ȳⱼ"""

    name = "log_softmax"
    axis: int = -1

    def forward(self, x: Array) -> Array:
        shifted = x - x.max(axis=self.axis, keepdims=True)
        return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=self.axis, keepdims=True)))

    def backward(self, gradient: Array, y: Array, x: Array) -> tuple[Array]:
        return (gradient - np.exp(y) * gradient.sum(axis=self.axis, keepdims=True),)
