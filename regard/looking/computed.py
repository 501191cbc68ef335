"""Looks that are stored as queries and keys, from which any weight can be computed.

weights = softmax(scale · q kᵀ + bias) under a mask. The vectors of a long text are far smaller than
its weights: 4,096 tokens in 12 heads of 64 are 25 MB, and 805 MB of weights.
"""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from regard.attention import Attended, Look, Softmax
from regard.attention.comparisons import InnerProduct
from regard.attention.positions import Bias
from regard.looking.masks import Part, StoredDense, StoredMask, describe_mask, restore_mask

DTYPES = {"float32": torch.float32, "float16": torch.float16}
Positive = Annotated[float, Field(gt=0)]


class StoredVectors(Part):
    """How weights follow from the tensors `queries` and `keys`."""

    size: Annotated[int, Field(ge=1, le=1 << 16)]  # of one query or key
    dtype: Literal["float32", "float16"]
    scale: float
    temperature: Positive
    base: Annotated[float, Field(gt=1)]
    mask: StoredMask | None
    bias: Annotated[int, Field(ge=0, lt=1 << 32)] | None
    """The longest distance between a query and a key for which the tensor `bias` has a number."""


def describe_vectors(look: Look, dtype: torch.dtype) -> StoredVectors | None:
    """How a look can be stored as vectors; None if its weights are smaller or follow otherwise."""
    attended = look.attended
    if attended is None or attended.stored_weights is not None:
        return None
    comparison, weigh = attended.comparison, attended.weigh
    if type(comparison) is not InnerProduct or type(weigh) is not Softmax:
        return None
    if comparison.queries.shape[:-2] != comparison.keys.shape[:-2]:
        return None
    queries, keys = comparison.sizes
    mask: StoredMask | None = None
    if attended.mask is not None:
        mask = describe_mask(attended.mask) or StoredDense(kind="dense")
    stored = StoredVectors.model_construct(
        size=comparison.queries.shape[-1],
        dtype="float16" if dtype == torch.float16 else "float32",
        scale=float(comparison.scale),
        temperature=float(weigh.temperature),
        base=float(weigh.base),
        mask=mask,
        bias=None if comparison.bias is None else comparison.bias.by_distance.shape[-1] // 2,
    )
    vectors = max_vector_bytes(stored, len(look.heads), queries, keys)
    return stored if vectors < 4 * len(look.heads) * queries * keys else None


def max_vector_bytes(stored: StoredVectors, heads: int, queries: int, keys: int) -> int:
    """The most that the tensors of a look take when it is stored as vectors."""
    table = heads * queries * keys if isinstance(stored.mask, StoredDense) else 0
    bias = 0 if stored.bias is None else 4 * heads * (2 * stored.bias + 1) + 8 * queries
    width = 4 if stored.dtype == "float32" else 2
    return width * heads * (queries + keys) * stored.size + table + bias


def collect_vectors(look: Look, stored: StoredVectors) -> dict[str, Tensor]:
    """The tensors of a look that is stored as vectors, by their names in the file."""
    assert look.attended is not None
    comparison = look.attended.comparison
    assert isinstance(comparison, InnerProduct)
    shape = (len(look.heads), -1, stored.size)
    tensors = {
        "queries": _as_type(comparison.queries.reshape(shape), stored.dtype),
        "keys": _as_type(comparison.keys.reshape(shape), stored.dtype),
    }
    if isinstance(stored.mask, StoredDense):
        table = look.mask
        assert table is not None
        tensors["mask"] = table
    if comparison.bias is not None:
        tensors["bias"] = comparison.bias.by_distance.float()
        tensors["positions"] = comparison.bias.query_positions.long()
    return {name: tensor.detach().cpu() for name, tensor in tensors.items()}


def restore_attended(
    stored: StoredVectors, tensors: dict[str, Tensor], heads: int, queries: int, keys: int
) -> Attended:
    """What the attention returned, but for its context, which nobody stored."""
    dtype = DTYPES[stored.dtype]
    q = _expect(tensors, "queries", dtype, (heads, queries, stored.size))
    k = _expect(tensors, "keys", dtype, (heads, keys, stored.size))
    bias = None
    if stored.bias is not None:
        table = _expect(tensors, "bias", torch.float32, (heads, 2 * stored.bias + 1))
        bias = Bias(table, _expect(tensors, "positions", torch.int64, (queries,)), keys)
        _check_distances(bias, stored.bias)
    # In single precision from here on: weights in half would lose more than their vectors.
    comparison = InnerProduct(q.float().unsqueeze(0), k.float().unsqueeze(0), stored.scale, bias)
    mask = None if stored.mask is None else restore_mask(stored.mask, _mask_table(tensors))
    if mask is not None:
        mask.check((1, heads), queries, keys)
    weigh = Softmax(stored.temperature, stored.base)
    return Attended(torch.empty(1, heads, queries, 0), comparison, mask, weigh)


def _as_type(vectors: Tensor, name: str) -> Tensor:
    vectors = vectors.to(DTYPES[name])
    if not bool(vectors.isfinite().all()):
        raise ValueError(f"dtype ({name}) cannot hold these queries and keys: they are too large")
    return vectors


def _expect(
    tensors: dict[str, Tensor], name: str, dtype: torch.dtype, shape: tuple[int, ...]
) -> Tensor:
    found = tensors.get(name)
    if found is None or found.dtype != dtype or tuple(found.shape) != shape:
        told = "missing" if found is None else f"{found.dtype} {tuple(found.shape)}"
        raise ValueError(f"its {name} are {told}, and should be {dtype} {shape}")
    return found


def _mask_table(tensors: dict[str, Tensor]) -> Tensor | None:
    table = tensors.get("mask")
    if table is not None and (table.dtype != torch.bool or table.dim() != 3):
        raise ValueError(f"its mask is {table.dtype} {tuple(table.shape)}, not (head, query, key)")
    return table


def _check_distances(bias: Bias, longest: int) -> None:
    positions = bias.query_positions
    if not len(positions) or not bias.keys:
        return
    low, high = -int(positions.max()), bias.keys - 1 - int(positions.min())
    if low < -longest or high > longest:
        raise ValueError(
            f"its positions lie farther from its keys than its bias reaches, {longest}"
        )
