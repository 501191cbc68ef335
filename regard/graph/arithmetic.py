"""Sums, products, powers and matrix products. Shapes broadcast as in NumPy."""

from dataclasses import dataclass

import numpy as np

from regard.graph.operation import Array, Operation

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Elementwise(Operation):
    """An operation of two inputs, number by number; size-1 axes broadcast."""

    needs = "shapes must broadcast: axes counted from the last are equal, or one of them is 1"


class Add(Elementwise):
    """y = a + b,  ā = ȳ,  b̄ = ȳ"""

    name = "add"
    notation = "{} + {}"

    def forward(self, a: Array, b: Array) -> Array:
        return a + b

    def backward(self, gradient: Array, y: Array, a: Array, b: Array) -> tuple[Array, Array]:
        return gradient, gradient


class Subtract(Elementwise):
    """y = a − b,  ā = ȳ,  b̄ = −ȳ"""

    name = "subtract"
    notation = "{} - {}"

    def forward(self, a: Array, b: Array) -> Array:
        return a - b

    def backward(self, gradient: Array, y: Array, a: Array, b: Array) -> tuple[Array, Array]:
        return gradient, -gradient


class Multiply(Elementwise):
    """y = a b,  ā = ȳ b,  b̄ = ȳ a"""

    name = "multiply"
    notation = "{} * {}"

    def forward(self, a: Array, b: Array) -> Array:
        return a * b

    def backward(self, gradient: Array, y: Array, a: Array, b: Array) -> tuple[Array, Array]:
        return gradient * b, gradient * a


class Divide(Elementwise):
    """y = a / b,  ā = ȳ / b,  b̄ = −ȳ y / b"""

    name = "divide"
    notation = "{} / {}"

    def forward(self, a: Array, b: Array) -> Array:
        return a / b

    def backward(self, gradient: Array, y: Array, a: Array, b: Array) -> tuple[Array, Array]:
        return gradient / b, -gradient * y / b


class Negate(Operation):
    """y = −a,  ā = −ȳ"""

    name = "negate"
    notation = "-{}"

    def forward(self, a: Array) -> Array:
        return -a

    def backward(self, gradient: Array, y: Array, a: Array) -> tuple[Array]:
        return (-gradient,)


@dataclass(frozen=True, eq=False)
class Power(Operation):
    """y = aⁿ for a fixed number n,  ā = ȳ n aⁿ⁻¹"""

    name = "power"
    exponent: float

    @property
    def settings(self) -> str:
        return f"{self.exponent:g}"

    def formula(self, *inputs: str) -> str:
        if float(self.exponent).is_integer():
            return inputs[0] + self.settings.translate(SUPERSCRIPTS)
        return f"{inputs[0]} ** {self.settings}"

    def forward(self, a: Array) -> Array:
        return np.power(a, self.exponent)

    def backward(self, gradient: Array, y: Array, a: Array) -> tuple[Array]:
        if self.exponent == 0:  # 0 · a⁻¹ would be NaN at a = 0, where a⁰ is as flat as anywhere
            return (np.zeros_like(a),)
        return (gradient * self.exponent * np.power(a, self.exponent - 1),)


class GeneralPower(Elementwise):
    """y = aᵇ,  ā = ȳ b aᵇ⁻¹,  b̄ = ȳ y ln a"""

    name = "power"
    notation = "{} ** {}"

    def forward(self, a: Array, b: Array) -> Array:
        return np.power(a, b)

    def backward(self, gradient: Array, y: Array, a: Array, b: Array) -> tuple[Array, Array]:
        # At a = 0 the formulas speak of 0⁻¹ and ln 0, though a⁰ is flat there, and 0ᵇ is too.
        slope = np.power(a, np.where(b == 0, 1.0, b - 1))
        return gradient * b * slope, gradient * y * np.log(np.where(a == 0, 1.0, a))


class MatMul(Operation):
    """Y = A B,  Ā = Ȳ Bᵀ,  B̄ = Aᵀ Ȳ

    A vector on the left is a row, on the right a column; leading axes broadcast.
    """

    name = "matmul"
    notation = "{} @ {}"
    needs = (
        "the last axis of the first must be as long as the last but one of the second "
        "(the only one, for a vector)"
    )

    def forward(self, a: Array, b: Array) -> Array:
        return np.asarray(a @ b)

    def backward(self, gradient: Array, y: Array, a: Array, b: Array) -> tuple[Array, Array]:
        rows = a[None, :] if a.ndim == 1 else a  # (…, row, inner)
        columns = b[:, None] if b.ndim == 1 else b  # (…, inner, column)
        if b.ndim == 1:
            gradient = gradient[..., None]
        if a.ndim == 1:
            gradient = gradient[..., None, :]  # (…, row, column)
        a_bar, b_bar = gradient @ columns.swapaxes(-1, -2), rows.swapaxes(-1, -2) @ gradient
        # A row's helping axis leads and is summed with the others; a column's is the last.
        return a_bar, b_bar[..., 0] if b.ndim == 1 else b_bar
