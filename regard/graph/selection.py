"""Operations that select by ids or by a mask, which have no gradient themselves."""

import numpy as np

from regard.graph.activations import LogSoftmax
from regard.graph.operation import Array, Operation


class Embedding(Operation):
    """yᵢ = table[idᵢ],  each row of the table gathers the ȳᵢ of every i that read it"""

    name = "embedding"

    def forward(self, table: Array, ids: Array) -> Array:
        if table.ndim != 2:
            raise ValueError("the table must have two axes, one row an id")
        check_ids(ids, len(table))
        return np.asarray(table[ids])

    def backward(
        self, gradient: Array, y: Array, table: Array, ids: Array
    ) -> tuple[Array | None, ...]:
        rows = np.zeros_like(table)
        np.add.at(rows, ids, gradient)
        return rows, None


class CrossEntropy(Operation):
    """y = −(1/n) Σᵢ ln pᵢ[idᵢ] with pᵢ = softmax(logitsᵢ),  logits̄ᵢ = ȳ (pᵢ − onehot(idᵢ)) / n"""

    name = "cross_entropy"

    def forward(self, logits: Array, ids: Array) -> Array:
        if logits.ndim == 0 or ids.shape != logits.shape[:-1]:
            raise ValueError("there must be one id for each row of logits")
        if ids.size == 0:
            raise ValueError("there must be at least one id")
        check_ids(ids, logits.shape[-1])
        chosen = np.take_along_axis(LogSoftmax().forward(logits), ids[..., None], axis=-1)
        return np.asarray(-chosen.mean())

    def backward(
        self, gradient: Array, y: Array, logits: Array, ids: Array
    ) -> tuple[Array | None, ...]:
        p = np.exp(LogSoftmax().forward(logits))
        onehot = ids[..., None] == np.arange(logits.shape[-1])
        return gradient * (p - onehot) / ids.size, None


class Where(Operation):
    """y = a where the mask is True, else b,  ā = ȳ there and 0 elsewhere,  b̄ the other way round"""

    name = "where"
    needs = "mask, first and second must broadcast to one shape"

    def forward(self, mask: Array, a: Array, b: Array) -> Array:
        return np.where(mask, a, b)

    def backward(
        self, gradient: Array, y: Array, mask: Array, a: Array, b: Array
    ) -> tuple[Array | None, ...]:
        return None, np.where(mask, gradient, 0.0), np.where(mask, 0.0, gradient)


def check_ids(ids: Array, count: int) -> None:
    """Refuse what NumPy would take: −1 is no id, though it is an index."""
    outside = ids[(ids < 0) | (ids >= count)]
    if outside.size:
        raise ValueError(f"ids must lie in 0 … {count - 1}, got {outside.flat[0]}")
