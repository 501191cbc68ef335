"""What an operation is: a way forward, and beside it the way back.

For y = f(a, b, …) inside a larger computation with output ℓ, write ȳ = ∂ℓ/∂y. The way back is the
vector-Jacobian product ā = Jᵀȳ with J = ∂y/∂a: it turns what ℓ asks of y into what ℓ asks of a.
No operation ever builds J. Operations know arrays; which nodes they join is the business of `node`.

Baydin, Pearlmutter, Radul & Siskind (2018), "Automatic differentiation in machine learning: a
survey", section 3.2.
"""

from collections.abc import Callable
from dataclasses import Field, dataclass, fields, is_dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Axis = int | tuple[int, ...] | None


class Operation:
    """y = f(a, b, …); a subclass writes the formula and, beside it, ā, b̄, … from ȳ.

    `forward(a, b, …)` gives y. `backward(ȳ, y, a, b, …)` gives (ā, b̄, …), with None for an input
    that has no gradient. Broadcasting needs no word there: an ā that came out larger than a is
    summed by `sum_to`.
    """

    name: str
    notation: ClassVar[str] = ""  # a formula with places for the inputs, "{} + {}"
    needs: ClassVar[str] = ""  # what the inputs must fulfil, said when NumPy refuses them
    forward: Callable[..., Array]
    backward: Callable[..., tuple[Array | None, ...]]

    @property
    def settings(self) -> str:
        """What the operation was told besides its inputs, as in "axis=1"."""
        told = ((field, getattr(self, field.name)) for field in _fields(self))
        return ", ".join(f"{field.name}={value}" for field, value in told if value != field.default)

    def formula(self, *inputs: str) -> str:
        """The operation written out with the names of its inputs."""
        if self.notation:
            return self.notation.format(*inputs)
        return f"{self.name}({', '.join(filter(None, [*inputs, self.settings]))})"

    def __str__(self) -> str:
        return f"{self.name} {self.settings}".rstrip()


@dataclass(frozen=True, eq=False)
class Leaf(Operation):
    """No operation at all: a value that comes from outside, and may be set from there."""

    name: str  # "given", "parameter" or "constant"
    dtype: type[float] | type[int] | type[bool] = float

    @property
    def settings(self) -> str:
        return {float: "", int: "ids", bool: "mask"}[self.dtype]

    def formula(self, *inputs: str) -> str:
        return str(self)


def _fields(operation: Operation) -> tuple["Field[Any]", ...]:
    return fields(operation) if is_dataclass(operation) else ()


def sum_to(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Sum over the axes along which an input of `shape` was repeated.

    Broadcasting uses one number many times, and what the many uses ask of it adds up.
    """
    if gradient.shape == shape:
        return gradient
    new = gradient.ndim - len(shape)  # axes the input did not have
    stretched = [new + axis for axis, size in enumerate(shape) if size == 1]
    axes = (*range(new), *(axis for axis in stretched if gradient.shape[axis] != 1))
    return np.asarray(gradient.sum(axis=axes, keepdims=True).reshape(shape))
