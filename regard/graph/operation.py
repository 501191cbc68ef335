"""Operations: a forward computation with its vector-Jacobian product beside it.

For y = f(a, b, …) inside a larger computation with output ℓ, write ȳ = ∂ℓ/∂y. The backward step is
the vector-Jacobian product ā = Jᵀȳ with J = ∂y/∂a: from the gradient of y to the gradient of a.
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
        """The arguments of the operation besides its inputs, as in "axis=1"."""
        arguments = ((field, getattr(self, field.name)) for field in _fields(self))
        return ", ".join(
            f"{field.name}={value}" for field, value in arguments if value != field.default
        )

    def formula(self, *inputs: str) -> str:
        """The operation written out with the names of its inputs."""
        if self.notation:
            return self.notation.format(*inputs)
        return f"{self.name}({', '.join(filter(None, [*inputs, self.settings]))})"

    def __str__(self) -> str:
        return f"{self.name} {self.settings}".rstrip()


@dataclass(frozen=True, eq=False)
class Leaf(Operation):
    """No operation: a value that is set from outside."""

    name: str  # "data", "parameter" or "constant"
    dtype: type[float] | type[int] | type[bool] = float

    @property
    def settings(self) -> str:
        return {float: "", int: "ids", bool: "mask"}[self.dtype]

    def formula(self, *inputs: str) -> str:
        return str(self)


def _fields(operation: Operation) -> tuple["Field[Any]", ...]:
    return fields(operation) if is_dataclass(operation) else ()


def sum_to(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Sum a gradient over the axes along which an input of `shape` was broadcast.

    Broadcasting uses one number many times, and its gradient is the sum over all uses.
    """
    if gradient.shape == shape:
        return gradient
    new = gradient.ndim - len(shape)  # axes the input did not have
    stretched = [new + axis for axis, size in enumerate(shape) if size == 1]
    axes = (*range(new), *(axis for axis in stretched if gradient.shape[axis] != 1))
    return np.asarray(gradient.sum(axis=axes, keepdims=True).reshape(shape))
