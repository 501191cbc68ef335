"""A look: one map of weights with everything needed to read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from regard.attention.attention import Attended, Selection, _chosen
from regard.attention.masks import fit

KINDS = ("self", "cross", "pool", "memory", "image", "senses")


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

    Rows need not add up to 1. The weights are computed when asked for.
    """

    path: str
    kind: str
    queries: tuple[Label, ...]
    keys: tuple[Label, ...]
    heads: tuple[str, ...] = ("",)
    mask: Tensor | None = None  # boolean, broadcast to (head, query, key), True = may look
    query_text: str | None = None
    key_text: str | None = None
    grid: tuple[int, int] | None = None  # (rows, columns) when the keys are cells of an image
    steps: tuple[int, ...] | None = None  # the decoding step of each query, if one by one
    source: Callable[[Tensor | None, Tensor | None], Tensor] = field(repr=False, compare=False)
    """Gives the weights for some heads and rows, or for all."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind ({self.kind!r}) must be one of {', '.join(KINDS)}")
        if self.grid is not None and self.grid[0] * self.grid[1] != len(self.keys):
            raise ValueError(f"grid {self.grid} does not hold {len(self.keys)} keys")

    @classmethod
    def of_weights(
        cls,
        weights: Tensor,
        *,
        queries: Labels,
        keys: Labels,
        path: str = "attention",
        kind: str = "self",
        **rest: Any,
    ) -> Look:
        """A look from weights at hand, (query, key) or (head, query, key)."""
        if weights.dim() not in (2, 3):
            raise ValueError(
                f"weights {tuple(weights.shape)} must be (query, key) or (head, query, key)"
            )
        table = weights.detach().to("cpu", torch.float32)
        table = table if table.dim() == 3 else table.unsqueeze(0)
        expected = (table.shape[0], len(queries), len(keys))
        if tuple(table.shape) != expected:
            raise ValueError(
                f"weights {tuple(weights.shape)} do not fit {len(queries)} queries and "
                f"{len(keys)} keys"
            )
        rest.setdefault("heads", _head_names(table.shape[0]))
        return cls(
            path=path,
            kind=kind,
            queries=_labels(queries),
            keys=_labels(keys),
            source=lambda heads, rows: _picked(table, heads, rows),
            **rest,
        )

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
        shape = (*attended.comparison.sizes,)
        if shape != (len(queries), len(keys)):
            raise ValueError(
                f"{len(queries)} queries and {len(keys)} keys do not label a map of {shape}"
            )
        many = attended.comparison.axes == 4
        heads = attended.context.shape[-3] if many else 1
        rest.setdefault("heads", _head_names(heads))
        rest.setdefault("mask", _mask_of(attended, row))

        def source(head: Tensor | None, rows: Tensor | None) -> Tensor:
            chosen = {} if head is None or not many else {"heads": head.tolist()}
            if rows is not None:
                chosen["rows"] = rows.tolist()
            weights = attended.weights_of(**chosen).detach()
            weights = weights if weights.dim() > 2 else weights.unsqueeze(0)
            weights = weights[row] if many else weights[row].unsqueeze(0)
            return weights.to("cpu", torch.float32)

        return cls(
            path=path,
            kind=kind,
            queries=_labels(queries),
            keys=_labels(keys),
            source=source,
            **rest,
        )

    @property
    def weights(self) -> Tensor:
        """(head, query, key), float32 on the CPU."""
        return self.source(None, None)

    def weights_of(
        self, *, heads: Selection | None = None, rows: Selection | None = None
    ) -> Tensor:
        """Some heads and rows only; the axes stay."""
        cpu = torch.device("cpu")
        head = None if heads is None else _chosen("heads", heads, len(self.heads), cpu)
        row = None if rows is None else _chosen("rows", rows, len(self.queries), cpu)
        return self.source(head, row)


def stitched(calls: Sequence[Attended], row: int = 0) -> Tensor:
    """One map from a decoder that looked step by step: (head, query, key), shorter rows filled up
    with zeros, as in a self-attention whose keys grow."""
    if not calls:
        raise ValueError("calls is empty: nothing was looked at")
    maps = []
    for attended in calls:
        weights = attended.weights.detach()[row]  # (…, query, key)
        maps.append(weights if weights.dim() == 3 else weights.unsqueeze(0))
    longest = max(m.shape[-1] for m in maps)
    padded = [torch.nn.functional.pad(m, (0, longest - m.shape[-1])) for m in maps]
    return torch.cat(padded, dim=-2).to("cpu", torch.float32)


def _mask_of(attended: Attended, row: int) -> Tensor | None:
    visible = attended.visible()
    if visible is None:
        return None
    visible = fit(visible, 3) if visible.dim() > 2 else visible.unsqueeze(0)
    own = visible[row if visible.shape[0] > 1 else 0].cpu()
    return own if own.dim() == 3 else own.unsqueeze(0)


def _labels(labels: Labels) -> tuple[Label, ...]:
    return tuple(x if isinstance(x, Label) else Label(str(x)) for x in labels)


def _head_names(count: int) -> tuple[str, ...]:
    return ("",) if count == 1 else tuple(f"head {i}" for i in range(count))


def _picked(table: Tensor, heads: Tensor | None, rows: Tensor | None) -> Tensor:
    table = table if heads is None else table.index_select(0, heads)
    return table if rows is None else table.index_select(1, rows)
