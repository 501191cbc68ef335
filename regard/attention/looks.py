"""A look: one map of attention weights with everything needed to read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.attention import Attended, Selection, select_indices

KINDS = ("self", "cross", "pool", "memory", "image", "senses")


@dataclass(frozen=True)
class Label:
    """What is shown beside a row or column, and the piece of raw text it stands for, if any."""

    text: str
    start: int | None = None
    end: int | None = None


Labels = Sequence[str | Label]


class Source(Protocol):
    """Where a look has its numbers from."""

    def weights(self, heads: Tensor | None, rows: Tensor | None) -> Tensor:
        """(head, query, key) for some heads and rows, or for all."""

    def mask(self) -> Tensor | None:
        """Boolean, broadcast to (head, query, key), True = may look."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """Where one attention looked: a (head, query, key) map, its labels and its mask.

    Rows need not add up to 1. Weights and mask are computed when asked for.
    """

    path: str
    kind: str
    queries: tuple[Label, ...]
    keys: tuple[Label, ...]
    heads: tuple[str, ...] = ("",)
    query_text: str | None = None
    key_text: str | None = None
    grid: tuple[int, int] | None = None  # (rows, columns) when the keys are cells of an image
    steps: tuple[int, ...] | None = None  # the decoding step of each query, if one by one
    source: Source = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind ({self.kind!r}) must be one of {', '.join(KINDS)}")
        if self.grid is not None and self.grid[0] * self.grid[1] != len(self.keys):
            raise ValueError(f"grid {self.grid} does not hold {len(self.keys)} keys")
        if self.steps is not None and len(self.steps) != len(self.queries):
            raise ValueError(f"{len(self.steps)} steps do not fit {len(self.queries)} queries")

    @classmethod
    def of_weights(
        cls,
        weights: Tensor,
        *,
        queries: Labels,
        keys: Labels,
        path: str = "attention",
        kind: str = "self",
        mask: Tensor | None = None,
        **rest: Any,
    ) -> Look:
        """A look from weights at hand, (query, key) or (head, query, key)."""
        if weights.dim() not in (2, 3):
            raise ValueError(
                f"weights {tuple(weights.shape)} must be (query, key) or (head, query, key)"
            )
        table = weights.detach().to("cpu", torch.float32, copy=True)
        table = table if table.dim() == 3 else table.unsqueeze(0)
        if tuple(table.shape[1:]) != (len(queries), len(keys)):
            raise ValueError(
                f"weights {tuple(weights.shape)} do not fit {len(queries)} queries and "
                f"{len(keys)} keys"
            )
        source = _StoredWeights(table, _check_mask(mask, table))
        return cls._with_labels(source, table.shape[0], queries, keys, path, kind, **rest)

    @classmethod
    def of(
        cls,
        attended: Attended,
        *,
        queries: Labels,
        keys: Labels,
        path: str = "attention",
        kind: str = "self",
        row: int = 0,
        **rest: Any,
    ) -> Look:
        """A look at what row `row` of the batch read; only what is asked for gets computed."""
        axes, sizes = attended.comparison.axes, attended.comparison.sizes
        if sizes != (len(queries), len(keys)):
            raise ValueError(
                f"{len(queries)} queries and {len(keys)} keys do not label a map of {sizes}"
            )
        heads = attended.context.shape[1] if axes == 4 else 1
        source = _ComputedWeights.of(attended, row)
        return cls._with_labels(source, heads, queries, keys, path, kind, **rest)

    @classmethod
    def _with_labels(
        cls,
        source: Source,
        count: int,
        queries: Labels,
        keys: Labels,
        path: str,
        kind: str,
        **rest: Any,
    ) -> Look:
        names = ("",) if count == 1 else tuple(f"head {i}" for i in range(count))
        heads = tuple(rest.pop("heads", names))
        if len(heads) != count:
            raise ValueError(f"heads {heads} do not name {count} heads")
        return cls(
            path=path,
            kind=kind,
            queries=_as_labels(queries),
            keys=_as_labels(keys),
            heads=heads,
            source=source,
            **rest,
        )

    @property
    def weights(self) -> Tensor:
        """(head, query, key), float32 on the CPU."""
        return self.source.weights(None, None)

    @property
    def mask(self) -> Tensor | None:
        """Boolean, broadcast to (head, query, key), True = may look; None for everywhere."""
        return self.source.mask()

    def weights_of(
        self, *, heads: Selection | None = None, rows: Selection | None = None
    ) -> Tensor:
        """Some heads and rows only; the axes stay."""
        cpu = torch.device("cpu")
        head = None if heads is None else select_indices("heads", heads, len(self.heads), cpu)
        row = None if rows is None else select_indices("rows", rows, len(self.queries), cpu)
        return self.source.weights(head, row)


@dataclass(frozen=True)
class _StoredWeights:
    """Weights at hand as a tensor."""

    table: Tensor  # (head, query, key)
    allowed: Tensor | None

    def weights(self, heads: Tensor | None, rows: Tensor | None) -> Tensor:
        table = self.table if heads is None else self.table.index_select(0, heads)
        return table if rows is None else table.index_select(1, rows)

    def mask(self) -> Tensor | None:
        return self.allowed


@dataclass(frozen=True)
class _ComputedWeights:
    """Weights computed on demand for one row of the batch."""

    attended: Attended

    @classmethod
    def of(cls, attended: Attended, row: int) -> _ComputedWeights:
        axes = attended.comparison.axes
        if axes > 4:
            raise ValueError(f"a look needs weights ([batch, [head,]] query, key), not {axes} axes")
        return cls(attended if axes == 2 else attended.pick(row))

    def weights(self, heads: Tensor | None, rows: Tensor | None) -> Tensor:
        has_heads = self.attended.comparison.axes == 4
        weights = self.attended.weights_of(
            heads=heads.tolist() if has_heads and heads is not None else None,
            rows=None if rows is None else rows.tolist(),
        )
        return _to_three_axes(weights.detach().to("cpu", torch.float32))

    def mask(self) -> Tensor | None:
        visible = self.attended.visible()
        return None if visible is None else _to_three_axes(visible.cpu())


def stitch(calls: Sequence[Attended], row: int = 0) -> Tensor:
    """One map from the steps of a decoder: (head, query, key), shorter rows padded with zeros, as
    in a self-attention whose keys grow."""
    if not calls:
        raise ValueError("calls is empty: nothing was looked at")
    maps = [_ComputedWeights.of(attended, row).weights(None, None) for attended in calls]
    longest = max(m.shape[-1] for m in maps)
    return torch.cat([F.pad(m, (0, longest - m.shape[-1])) for m in maps], dim=-2)


def _to_three_axes(table: Tensor) -> Tensor:
    """(1, head, query, key), (1, query, key) or (query, key) as (head, query, key)."""
    if table.dim() == 4:
        return table.squeeze(0)
    return table if table.dim() == 3 else table.unsqueeze(0)


def _as_labels(labels: Labels) -> tuple[Label, ...]:
    return tuple(x if isinstance(x, Label) else Label(str(x)) for x in labels)


def _check_mask(mask: Tensor | None, table: Tensor) -> Tensor | None:
    if mask is None:
        return None
    if mask.dtype != torch.bool or mask.dim() not in (2, 3):
        raise ValueError(
            f"mask ({mask.dtype} {tuple(mask.shape)}) must be a boolean tensor (query, key) or "
            "(head, query, key), True where one may look"
        )
    mask = mask.cpu() if mask.dim() == 3 else mask.cpu().unsqueeze(0)
    if any(n not in (1, m) for n, m in zip(mask.shape, table.shape, strict=True)):
        raise ValueError(f"mask {tuple(mask.shape)} does not fit the weights {tuple(table.shape)}")
    return mask
