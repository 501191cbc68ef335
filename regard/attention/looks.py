"""A look: one map of attention weights with everything needed to read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.attended import Attended, Selection, select_indices
from regard.attention.comparisons import InnerProduct
from regard.attention.masks import Causal

KINDS = ("self", "cross", "pool", "memory", "image", "senses", "gates", "episode", "layer", "other")


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

    def mask(self, rows: Tensor | None) -> Tensor | None:
        """Boolean, broadcast to (head, row, key), True = may look."""


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
    source: Source = field(repr=False, compare=False)

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
        sizes = attended.comparison.sizes
        if sizes != (len(queries), len(keys)):
            raise ValueError(
                f"{len(queries)} queries and {len(keys)} keys do not label a map of {sizes}"
            )
        source = _ComputedWeights.of(attended, row)
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
        source = _StitchedWeights.of(calls, row, first_keys, len(keys))
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
    def attended(self) -> Attended | None:
        """The call it is computed from, for one row of the batch: steps over a growing cache as if
        they were one. None if the weights are at hand or those of different calls."""
        if isinstance(self.source, _StitchedWeights):
            return self.source.merge()
        return self.source.attended if isinstance(self.source, _ComputedWeights) else None

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


@dataclass(frozen=True)
class _StoredWeights:
    """Weights at hand as a tensor."""

    table: Tensor  # (head, query, key)
    allowed: Tensor | None

    def weights(self, heads: Tensor | None, rows: Tensor | None) -> Tensor:
        table = self.table if heads is None else self.table.index_select(0, heads)
        return table if rows is None else table.index_select(1, rows)

    def mask(self, rows: Tensor | None) -> Tensor | None:
        if self.allowed is None or rows is None or self.allowed.shape[1] == 1:
            return self.allowed
        return self.allowed.index_select(1, rows)


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

    @property
    def heads(self) -> int:
        return self.attended.context.shape[1] if self.attended.comparison.axes == 4 else 1

    @property
    def queries(self) -> int:
        return self.attended.comparison.sizes[0]

    @property
    def keys(self) -> int:
        return self.attended.comparison.sizes[1]

    def weights(self, heads: Tensor | None, rows: Tensor | None) -> Tensor:
        has_heads = self.attended.comparison.axes == 4
        weights = self.attended.weights_of(
            heads=heads.tolist() if has_heads and heads is not None else None,
            rows=None if rows is None else rows.tolist(),
        )
        return _to_three_axes(weights.detach().to("cpu", torch.float32))

    def mask(self, rows: Tensor | None) -> Tensor | None:
        if rows is not None:
            rows = rows.to(self.attended.comparison.device)
        visible = self.attended.visible(rows)
        return None if visible is None else _to_three_axes(visible.cpu())


@dataclass(frozen=True)
class _StitchedWeights:
    """The rows of several calls below one another; each call has its own keys among all."""

    parts: tuple[_ComputedWeights, ...]
    first_keys: tuple[int, ...]  # of each call: which key is its first
    keys: int

    @classmethod
    def of(
        cls,
        calls: Sequence[Attended],
        row: int = 0,
        first_keys: Sequence[int] | None = None,
        keys: int | None = None,
    ) -> _StitchedWeights:
        if not calls:
            raise ValueError("calls is empty: nothing was looked at")
        parts = tuple(_ComputedWeights.of(attended, row) for attended in calls)
        begins = (0,) * len(parts) if first_keys is None else tuple(first_keys)
        made = cls(parts, begins, 0)
        return replace(made, keys=made.reach if keys is None else keys)

    @property
    def reach(self) -> int:
        """How many keys there are up to the last of any call."""
        return max(
            first + part.keys for first, part in zip(self.first_keys, self.parts, strict=True)
        )

    @property
    def heads(self) -> int:
        return self.parts[0].heads

    @property
    def queries(self) -> int:
        return sum(part.queries for part in self.parts)

    def weights(self, heads: Tensor | None, rows: Tensor | None) -> Tensor:
        count = self.heads if heads is None else len(heads)
        pieces = [torch.zeros(count, 0, self.keys)]
        for at, own in self._split(rows):
            pieces.append(self._widen(self.parts[at].weights(heads, own), at))
        return torch.cat(pieces, dim=-2)

    def mask(self, rows: Tensor | None) -> Tensor | None:
        whole = all(part.keys == self.keys for part in self.parts)
        if whole and all(part.attended.mask is None for part in self.parts):
            return None
        pieces = [self._widen(self._mask_part(at, own), at) for at, own in self._split(rows)]
        if not pieces:
            return torch.zeros(1, 0, self.keys, dtype=torch.bool)
        heads = max(len(piece) for piece in pieces)
        return torch.cat([piece.expand(heads, -1, -1) for piece in pieces], dim=-2)

    def merge(self) -> Attended | None:
        """All steps as one causal attention; None unless each went on from the keys before it."""
        calls, end = [part.attended for part in self.parts], 0
        last = calls[-1]
        for call, first in zip(calls, self.first_keys, strict=True):
            end += call.comparison.sizes[0]
            if first or call.comparison.sizes[1] != end or not _continues(call, last):
                return None
        if end != self.keys or not isinstance(last.comparison, InnerProduct):
            return None
        comparisons = [call.comparison for call in calls]
        queries = torch.cat([c.queries for c in comparisons if isinstance(c, InnerProduct)], dim=-2)
        context = torch.cat([call.context for call in calls], dim=-2)
        return replace(
            last,
            context=context,
            comparison=replace(last.comparison, queries=queries),
            mask=Causal(),
        )

    def _mask_part(self, at: int, rows: Tensor) -> Tensor:
        visible = self.parts[at].mask(rows)
        if visible is None:
            return torch.ones(1, len(rows), self.parts[at].keys, dtype=torch.bool)
        return visible.expand(-1, len(rows), self.parts[at].keys)

    def _split(self, rows: Tensor | None) -> Iterator[tuple[int, Tensor]]:
        """Which call these rows are of, and their numbers in it; neighbours come together."""
        owners = [(at, own) for at, part in enumerate(self.parts) for own in range(part.queries)]
        wanted = owners if rows is None else [owners[row] for row in rows.tolist()]
        for at, together in groupby(wanted, key=itemgetter(0)):
            yield at, torch.tensor([own for _, own in together])

    def _widen(self, table: Tensor, at: int) -> Tensor:
        """The keys of a call at their place among all; nothing beside them."""
        first = self.first_keys[at]
        return F.pad(table, (first, self.keys - first - table.shape[-1]))


def _continues(call: Attended, last: Attended) -> bool:
    """Whether a causal call had the first of the keys that the last call has."""
    one, other = call.comparison, last.comparison
    if not isinstance(one, InnerProduct) or not isinstance(other, InnerProduct):
        return False
    alike = (one.scale, one.bias) == (other.scale, None) and call.weigh is last.weigh
    pure = call.stored_weights is None and type(call.mask) is Causal
    return alike and pure and torch.equal(one.keys, other.keys[..., : one.sizes[1], :])


def stitch(calls: Sequence[Attended], row: int = 0) -> Tensor:
    """One map from the steps of a decoder: (head, query, key), shorter rows padded with zeros, as
    in a self-attention whose keys grow."""
    return _StitchedWeights.of(calls, row).weights(None, None)


def _select(name: str, selection: Selection, count: int) -> Tensor:
    return select_indices(name, selection, count, torch.device("cpu"))


def _to_three_axes(table: Tensor) -> Tensor:
    """(1, head, query, key), (1, query, key) or (query, key) as (head, query, key)."""
    if table.dim() == 4:
        return table.squeeze(0)
    return table if table.dim() == 3 else table.unsqueeze(0)


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
