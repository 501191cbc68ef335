"""Symbolic masks: which keys a query may see, as in `Causal() & Padding(lengths)`.

A mask answers for the rows it is asked about and is never written out whole. At 8,192 tokens a
dense mask alone is 64 MB of booleans, and 256 MB once a kernel has made numbers of them.

`True` means *may look*, in every room of the house. When there are fewer queries than keys, as in
decoding with a cache, the queries are the last ones: the last query stands beside the last key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.picking import Rows, pick_rows


class Mask:
    """Says which keys each query may look at; `&` and `|` combine masks with each other and with
    boolean tensors."""

    rows_alike = False
    """Whether every query sees the same keys, so that one row stands for all."""

    counts_positions = False
    """Whether it places queries among the keys, and so holds within one sequence only."""

    def visible(self, rows: Tensor, queries: int, keys: int) -> Tensor:
        """The answer for the queries numbered `rows`, out of `queries`, over all `keys`.

        Boolean, (batch, rows, key) or (batch, …, rows, key); size-1 axes broadcast.
        """
        raise NotImplementedError

    def span(self, first: int, last: int, queries: int, keys: int) -> tuple[int, int]:
        """Keys low … high − 1 hold everything that queries first … last may see."""
        return 0, keys

    def check(self, leading: tuple[int, ...], queries: int, keys: int) -> None:
        """Raise a ValueError if this mask cannot belong to scores (*leading, query, key)."""

    def pick(self, rows: Rows) -> Mask:
        """The mask of some rows of the batch alone; here, of a mask that is the same for all."""
        return self

    def append(self, count: int) -> Mask:
        """The mask when `count` more keys stand behind the others, all of them real.

        What goes by positions alone, as here, holds for any number of keys.
        """
        return self

    def dense(self, queries: int, keys: int, device: torch.device | str | None = None) -> Tensor:
        """The whole mask written out, for small ones and for pictures."""
        return self.visible(torch.arange(queries, device=device), queries, keys)

    def write_out(
        self, queries: int, keys: int, device: torch.device | str | None = None
    ) -> WrittenMask:
        """The whole mask written out once, for all layers of a decoding step to share."""
        return WrittenMask(self.dense(queries, keys, device))

    def __and__(self, other: Mask | Tensor) -> Mask:
        return Both(self, as_mask(other))

    __rand__ = __and__

    def __or__(self, other: Mask | Tensor) -> Mask:
        return Either(self, as_mask(other))

    __ror__ = __or__


def _key_positions(rows: Tensor, keys: int) -> Tensor:
    return torch.arange(keys, device=rows.device)


def _query_positions(rows: Tensor, queries: int, keys: int) -> Tensor:
    """The key position at which each query stands, as a column."""
    return (rows + (keys - queries)).unsqueeze(-1)  # (rows, 1)


@dataclass(frozen=True)
class Causal(Mask):
    """A query sees its own position and everything before it."""

    counts_positions = True

    def visible(self, rows: Tensor, queries: int, keys: int) -> Tensor:
        return (_key_positions(rows, keys) <= _query_positions(rows, queries, keys)).unsqueeze(0)

    def span(self, first: int, last: int, queries: int, keys: int) -> tuple[int, int]:
        return 0, min(max(last + keys - queries + 1, 0), keys)


@dataclass(frozen=True)
class StrictlyCausal(Mask):
    """A query sees what comes before its own position, and so the first one sees nothing."""

    counts_positions = True

    def visible(self, rows: Tensor, queries: int, keys: int) -> Tensor:
        return (_key_positions(rows, keys) < _query_positions(rows, queries, keys)).unsqueeze(0)

    def span(self, first: int, last: int, queries: int, keys: int) -> tuple[int, int]:
        return 0, min(max(last + keys - queries, 0), keys)


@dataclass(frozen=True)
class Window(Mask):
    """A query sees `before` positions to its left, itself, and `after` to its right."""

    before: int
    after: int = 0
    counts_positions = True

    def __post_init__(self) -> None:
        for name, value in (("before", self.before), ("after", self.after)):
            if value < 0:
                raise ValueError(f"{name} ({value}) must be 0 or more: it counts positions")

    def visible(self, rows: Tensor, queries: int, keys: int) -> Tensor:
        distance = _key_positions(rows, keys) - _query_positions(rows, queries, keys)  # (rows, key)
        return ((distance >= -self.before) & (distance <= self.after)).unsqueeze(0)

    def span(self, first: int, last: int, queries: int, keys: int) -> tuple[int, int]:
        offset = keys - queries
        low = min(max(first + offset - self.before, 0), keys)
        return low, min(max(last + offset + self.after + 1, low), keys)


class _LengthMask(Mask):
    """What padding and prefix share: a length for each row of the batch, or for each place in all
    leading axes, as for the words of each sentence of each document."""

    rows_alike = True

    def __init__(self, lengths: Tensor):
        if not isinstance(lengths, Tensor) or lengths.dim() < 1 or not _is_integer(lengths):
            raise ValueError(
                f"lengths ({_describe(lengths)}) must be a tensor of whole numbers (batch,) "
                "or (batch, …)"
            )
        if lengths.numel() and int(lengths.min()) < 0:
            raise ValueError(f"lengths ({lengths.tolist()}) must be 0 or more")
        # A copy, since whoever looks later must find the lengths of the moment of looking.
        self.lengths = lengths.to(torch.int64, copy=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.lengths.tolist()})"

    def check(self, leading: tuple[int, ...], queries: int, keys: int) -> None:
        name, shape = f"{type(self).__name__} lengths", tuple(self.lengths.shape)
        if len(shape) == 1:
            _check_batch(name, shape[0], leading)
        elif not _broadcasts(shape, leading):
            raise ValueError(f"{name} {shape} do not fit the leading axes of the scores {leading}")

    def _column(self) -> Tensor:
        """(batch, …, 1, 1)"""
        return self.lengths.unsqueeze(-1).unsqueeze(-1)


class Padding(_LengthMask):
    """Keys beyond a row's length are padding and may not be seen; `side` says where it stands.

    Padding(lengths)  # (batch,): the same for all heads, or whatever follows the batch
    Padding(words_per_sentence)  # (batch, sentence), for keys (batch, sentence, word, size)
    """

    def __init__(self, lengths: Tensor, side: str = "right"):
        super().__init__(lengths)
        if side not in ("right", "left"):
            raise ValueError(f"side ({side!r}) must be 'right' or 'left'")
        self.side = side

    def visible(self, rows: Tensor, queries: int, keys: int) -> Tensor:
        column, lengths = _key_positions(rows, keys), self._column()
        return column < lengths if self.side == "right" else column >= keys - lengths

    def pick(self, rows: Rows) -> Padding:
        return Padding(_pick(self.lengths, rows), self.side)

    def append(self, count: int) -> Padding:
        if self.side == "right":
            raise ValueError(
                f"append ({count}): keys behind padding on the right would be taken for padding; "
                "pad on the left, or combine the masks of both parts by hand"
            )
        return Padding(self.lengths + count, self.side)


class Prefix(_LengthMask):
    """The first keys of each row are open to every query: `Causal() | Prefix(lengths)` is the
    prefix language model of Raffel et al. (2020), section 3.2.1."""

    def visible(self, rows: Tensor, queries: int, keys: int) -> Tensor:
        return _key_positions(rows, keys) < self._column()

    def pick(self, rows: Rows) -> Prefix:
        return Prefix(_pick(self.lengths, rows))


class Packed(Mask):
    """Several documents share a row; a query sees only keys with its own document's number."""

    counts_positions = True

    def __init__(self, documents: Tensor):
        if not isinstance(documents, Tensor) or documents.dim() != 2 or not _is_integer(documents):
            raise ValueError(
                f"documents ({_describe(documents)}) must be a tensor of whole numbers "
                "(batch, key): the number of the document each key belongs to"
            )
        self.documents = documents.to(torch.int64, copy=True)

    def visible(self, rows: Tensor, queries: int, keys: int) -> Tensor:
        own = self.documents[:, rows + (keys - queries)]  # (batch, rows)
        return own.unsqueeze(-1) == self.documents.unsqueeze(-2)

    def check(self, leading: tuple[int, ...], queries: int, keys: int) -> None:
        _check_batch("Packed documents", self.documents.shape[0], leading)
        if self.documents.shape[1] != keys or queries > keys:
            raise ValueError(
                f"Packed documents number {self.documents.shape[1]} keys, but there are "
                f"{keys} keys, and {queries} queries that must be among them"
            )

    def pick(self, rows: Rows) -> Packed:
        return Packed(_pick(self.documents, rows))

    def append(self, count: int) -> Packed:
        raise ValueError(
            f"append ({count}): nobody knows which document the new keys belong to; make a new "
            "Packed"
        )


class Dense(Mask):
    """A mask somebody wrote out: (query, key), (batch, query, key) or (batch, …, query, key).

    It is not copied, since it may be an expanded view of something small: leave it as it is for as
    long as somebody may ask for weights.
    """

    def __init__(self, allowed: Tensor):
        if not isinstance(allowed, Tensor) or allowed.dtype != torch.bool:
            raise ValueError(
                f"mask ({_describe(allowed)}) must be a boolean tensor or a Mask, "
                "True where a query may look"
            )
        if allowed.dim() < 2:
            raise ValueError(
                f"mask {tuple(allowed.shape)} must be (query, key), (batch, query, key) "
                "or (batch, …, query, key)"
            )
        self.allowed = allowed if allowed.dim() > 2 else allowed.unsqueeze(0)
        self.rows_alike = self.allowed.shape[-2] == 1

    def visible(self, rows: Tensor, queries: int, keys: int) -> Tensor:
        return self.allowed if self.rows_alike else self.allowed[..., rows, :]

    def check(self, leading: tuple[int, ...], queries: int, keys: int) -> None:
        shape, scores = tuple(self.allowed.shape), (*leading, queries, keys)
        aligned = (shape[0], *[1] * (len(scores) - len(shape)), *shape[1:])
        if len(leading) == 0 and shape[0] == 1:
            aligned = shape[1:]
        if not _broadcasts(aligned, scores):
            raise ValueError(f"mask {shape} does not fit the scores {scores} (…, query, key)")

    def pick(self, rows: Rows) -> Dense:
        return type(self)(_pick(self.allowed, rows))

    def append(self, count: int) -> Dense:
        return type(self)(F.pad(self.allowed, (0, count), value=True))


class WrittenMask(Dense):
    """A mask that was written out for several attentions, which then share its numbers, too."""

    def __init__(self, allowed: Tensor):
        super().__init__(allowed)
        self._bias: Tensor | None = None
        self._blind: bool | None = None

    @property
    def blind(self) -> bool:
        """Whether there are queries that may look nowhere."""
        if self._blind is None:
            self._blind = not bool(self.allowed.any(dim=-1).all())
        return self._blind

    def bias(self, dtype: torch.dtype) -> Tensor:
        """0 where one may look and −∞ elsewhere: what a kernel adds to the scores."""
        if self._bias is None or self._bias.dtype != dtype:
            zeros = torch.zeros(self.allowed.shape, dtype=dtype, device=self.allowed.device)
            self._bias = zeros.masked_fill(~self.allowed, float("-inf"))
        return self._bias


class _Combination(Mask):
    join: Callable[[Tensor, Tensor], Tensor]

    def __init__(self, left: Mask, right: Mask):
        self.left, self.right = left, right
        self.rows_alike = left.rows_alike and right.rows_alike
        self.counts_positions = left.counts_positions or right.counts_positions

    def visible(self, rows: Tensor, queries: int, keys: int) -> Tensor:
        sides = [side.visible(rows, queries, keys) for side in (self.left, self.right)]
        axes = max(side.dim() for side in sides)
        return type(self).join(*(fit(side, axes) for side in sides))

    def spans(self, first: int, last: int, queries: int, keys: int) -> list[tuple[int, int]]:
        return [side.span(first, last, queries, keys) for side in (self.left, self.right)]

    def check(self, leading: tuple[int, ...], queries: int, keys: int) -> None:
        self.left.check(leading, queries, keys)
        self.right.check(leading, queries, keys)

    def pick(self, rows: Rows) -> Mask:
        return type(self)(self.left.pick(rows), self.right.pick(rows))

    def append(self, count: int) -> Mask:
        return type(self)(self.left.append(count), self.right.append(count))


class Both(_Combination):
    """`left & right`: visible where both say so."""

    join = staticmethod(torch.logical_and)

    def span(self, first: int, last: int, queries: int, keys: int) -> tuple[int, int]:
        (a, b), (c, d) = self.spans(first, last, queries, keys)
        low = max(a, c)
        return low, max(min(b, d), low)

    def __repr__(self) -> str:
        return f"({self.left!r} & {self.right!r})"


class Either(_Combination):
    """`left | right`: visible where one of them says so."""

    join = staticmethod(torch.logical_or)

    def span(self, first: int, last: int, queries: int, keys: int) -> tuple[int, int]:
        (a, b), (c, d) = self.spans(first, last, queries, keys)
        return min(a, c), max(b, d)

    def __repr__(self) -> str:
        return f"({self.left!r} | {self.right!r})"


def as_mask(mask: Mask | Tensor) -> Mask:
    """A mask as it is, a boolean tensor as a `Dense` one."""
    return mask if isinstance(mask, Mask) else Dense(mask)


def fit(visible: Tensor, axes: int) -> Tensor:
    """Give a (batch, rows, key) answer as many axes as the scores have, heads after the batch."""
    if axes == 2 and visible.dim() == 3 and visible.shape[0] == 1:
        return visible.squeeze(0)
    while visible.dim() < axes:
        visible = visible.unsqueeze(1)
    return visible


def _is_integer(numbers: Tensor) -> bool:
    return not (numbers.is_floating_point() or numbers.is_complex() or numbers.dtype == torch.bool)


def _describe(thing: object) -> str:
    if isinstance(thing, Tensor):
        return f"{thing.dtype} {tuple(thing.shape)}"
    return f"{type(thing).__name__} {thing!r}"


def _pick(tensor: Tensor, rows: Rows) -> Tensor:
    """A batch axis of size 1 broadcasts and stays as it is."""
    return tensor if tensor.shape[0] == 1 else pick_rows(tensor, rows)


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether the axes are as many, and each is the target's or 1."""
    if len(shape) != len(target):
        return False
    return all(n in (1, m) for n, m in zip(shape, target, strict=True))


def _check_batch(name: str, size: int, leading: tuple[int, ...]) -> None:
    batch = leading[0] if leading else 1
    if size not in (1, batch):
        raise ValueError(f"{name} are for a batch of {size}, but the batch has {batch} rows")
