"""A look: one map of attention weights with everything needed to read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from regard.attention.attended import Attended, Selection, select_indices
from regard.attention.look_sources import (
    ComputedWeights,
    LookSource,
    StitchedWeights,
    StoredWeights,
)

KINDS = ("self", "cross", "pool", "memory", "image", "senses", "gates", "episode", "layer", "other")


@dataclass(frozen=True)
class Label:
    """What is shown beside a row or column, and the piece of raw text it stands for, if any."""

    text: str
    start: int | None = None
    end: int | None = None


Labels = Sequence[str | Label]


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
    image: Tensor | None = field(default=None, repr=False, compare=False)  # (row, column, 3) bytes
    inner: tuple[Look, ...] = ()  # looks at what this one sums up, as a document's sentences
    source: LookSource = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind ({self.kind!r}) must be one of {', '.join(KINDS)}")
        if self.grid is not None and self.grid[0] * self.grid[1] != len(self.keys):
            raise ValueError(f"grid {self.grid} does not hold {len(self.keys)} keys")
        if self.steps is not None and len(self.steps) != len(self.queries):
            raise ValueError(f"{len(self.steps)} steps do not fit {len(self.queries)} queries")
        if self.image is not None:
            _check_image(self.image)

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
        source = StoredWeights(table, _check_mask(mask, table))
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
        sizes = attended.comparison.sizes
        if sizes != (len(queries), len(keys)):
            raise ValueError(
                f"{len(queries)} queries and {len(keys)} keys do not label a map of {sizes}"
            )
        source = ComputedWeights.of(attended, row)
        return cls._with_labels(source, source.heads, queries, keys, path, kind, **rest)

    @classmethod
    def of_calls(
        cls,
        calls: Sequence[Attended],
        *,
        queries: Labels,
        keys: Labels,
        path: str = "attention",
        kind: str = "self",
        row: int = 0,
        first_keys: Sequence[int] | None = None,
        **rest: Any,
    ) -> Look:
        """One look at several calls, as the steps of a decoder: the queries of one below those of
        the other. A key that a call did not have yet, or no more, is masked in its rows.

        `first_keys` says which key is the first of each call; 0 for all of them if left out.
        """
        source = StitchedWeights.of(calls, row, first_keys, len(keys))
        if source.queries != len(queries) or source.reach > len(keys):
            raise ValueError(
                f"{len(queries)} queries and {len(keys)} keys do not label {len(calls)} calls with "
                f"{source.queries} queries and {source.reach} keys"
            )
        steps = [step for step, part in enumerate(source.parts) for _ in range(part.queries)]
        rest.setdefault("steps", tuple(steps))
        return cls._with_labels(source, source.heads, queries, keys, path, kind, **rest)

    @classmethod
    def _with_labels(
        cls,
        source: LookSource,
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
    def attended(self) -> Attended | None:
        """The call it is computed from, for one row of the batch: steps over a growing cache as if
        they were one. None if the weights are at hand or those of different calls."""
        if isinstance(self.source, StitchedWeights):
            return self.source.merge()
        return self.source.attended if isinstance(self.source, ComputedWeights) else None

    @property
    def weights(self) -> Tensor:
        """(head, query, key), float32 on the CPU."""
        return self.source.weights(None, None)

    @property
    def mask(self) -> Tensor | None:
        """Boolean, broadcast to (head, query, key), True = may look; None for everywhere."""
        return self.source.mask(None)

    def weights_of(
        self,
        *,
        heads: Selection | None = None,
        rows: Selection | None = None,
        columns: Selection | None = None,
    ) -> Tensor:
        """Some heads, rows and columns only; the axes stay. Nothing else is computed but the rest
        of these rows, since a row is weighed as a whole.

        look.weights_of(heads=3, rows=slice(64), columns=slice(128))  # (1, 64, 128)
        """
        head = None if heads is None else _select("heads", heads, len(self.heads))
        row = None if rows is None else _select("rows", rows, len(self.queries))
        weights = self.source.weights(head, row)
        if columns is None:
            return weights
        return weights.index_select(-1, _select("columns", columns, len(self.keys)))

    def mask_of(self, *, rows: Selection) -> Tensor | None:
        """The mask of some rows only, broadcast to (head, row, key)."""
        return self.source.mask(_select("rows", rows, len(self.queries)))


def _select(name: str, selection: Selection, count: int) -> Tensor:
    return select_indices(name, selection, count, torch.device("cpu"))


def _as_labels(labels: Labels) -> tuple[Label, ...]:
    return tuple(x if isinstance(x, Label) else Label(str(x)) for x in labels)


def _check_image(image: Tensor) -> None:
    if image.dtype != torch.uint8 or image.dim() != 3 or image.shape[-1] != 3 or not image.numel():
        raise ValueError(
            f"image ({image.dtype} {tuple(image.shape)}) must be bytes (row, column, 3)"
        )


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
