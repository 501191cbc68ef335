"""A look made dense: the numbers of a map, ready for any pen.

A map too large to be drawn cell by cell is read in bands and drawn in blocks, each showing the
largest weight in it: an average would hide the very peaks somebody is looking for.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from regard.attention import Label, Look
from regard.looking.colours import Scale
from regard.looking.tokens import visible

SIDE = 1_024  # squares along one side of a map, at most: one pixel each
ROOM = 4_000_000  # squares in one file, over all its heads and looks,
FAIR = 250_000  # but each look may have so many
BAND = 4_000_000  # weights in hand at once while a large map is read


@dataclass(frozen=True, eq=False)
class View:
    """The part of a look that is drawn."""

    look: Look
    queries: tuple[Label, ...]
    keys: tuple[Label, ...]
    values: NDArray[np.float32]  # (head, query, key)
    hidden: NDArray[np.bool_]  # (head, query, key)
    sums: NDArray[np.float32]  # (head, query), or (head, 0) for blocks, whose sums mean nothing
    block: tuple[int, int] = (1, 1)  # queries and keys in one square

    @cached_property
    def scale(self) -> Scale:
        return Scale.over([self.values[~self.hidden]])

    @property
    def whole(self) -> bool:
        return self.block == (1, 1)


def views(looks: Sequence[Look]) -> list[View]:
    """All of them, sharing the room of one file."""
    return [view(look, max(FAIR, ROOM // len(looks))) for look in looks]


def view(look: Look, room: int = ROOM) -> View:
    """All of a look, in blocks where it is too large to be drawn weight by weight."""
    heads, queries, keys = len(look.heads), len(look.queries), len(look.keys)
    block = block_of(heads, queries, keys, room)
    if block == (1, 1):
        return part(look, queries, keys)
    down, across = block
    step = down * max(1, BAND // max(1, heads * keys * down))
    mask = look.mask  # asked for once: it may have to be computed
    bands = [
        pooled(look, mask, range(at, min(at + step, queries)), block)
        for at in range(0, queries, step)
    ]
    return View(
        look,
        joined(look.queries, down),
        joined(look.keys, across),
        np.concatenate([values for values, _ in bands], axis=1),
        np.concatenate([hidden for _, hidden in bands], axis=1),
        np.zeros((heads, 0), np.float32),
        block,
    )


def part(look: Look, queries: int, keys: int) -> View:
    """The first `queries` rows and the first `keys` columns, weight by weight."""
    values, hidden = numbers(look, look.mask, range(queries))
    sums = values.sum(axis=2, dtype=np.float64).astype(np.float32)
    labels = look.queries[:queries], look.keys[:keys]
    return View(look, *labels, values[:, :, :keys], hidden[:, :, :keys], sums)


def numbers(
    look: Look, mask: Tensor | None, rows: range
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Weights and hidden cells of some rows, both (head, row, key)."""
    values = look.weights_of(rows=slice(rows.start, rows.stop)).numpy()
    if not np.isfinite(values).all():
        head, row, key = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(
            f"{look.path}: the weight of head {head}, query {rows.start + row}, key {key} is "
            f"{values[head, row, key]}; a picture needs finite numbers"
        )
    if mask is None:
        return values, np.zeros(values.shape, bool)
    shape = (len(look.heads), len(look.queries), len(look.keys))
    return values, ~mask.expand(shape)[:, rows.start : rows.stop].numpy()


def block_of(heads: int, queries: int, keys: int, room: int) -> tuple[int, int]:
    """The smallest blocks with which a map fits."""
    down, across = max(1, -(-queries // SIDE)), max(1, -(-keys // SIDE))
    while heads * -(-queries // down) * -(-keys // across) > room:
        if queries // down > keys // across:
            down += 1
        else:
            across += 1
    return down, across


def pooled(
    look: Look, mask: Tensor | None, rows: range, block: tuple[int, int]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Of each block the weight that is farthest from zero; hidden where all of it is."""
    values, hidden = numbers(look, mask, rows)
    values = np.where(hidden, np.float32(0), values)
    high = reduced(np.maximum, values, block)
    low = reduced(np.minimum, values, block)
    return np.where(-low > high, low, high), reduced(np.logical_and, hidden, block)


def reduced(
    how: np.ufunc, values: NDArray[Any], block: tuple[int, int]
) -> NDArray[Any]:  # (head, row of blocks, column of blocks)
    down, across = (
        np.arange(0, size, step) for size, step in zip(values.shape[1:], block, strict=True)
    )
    return np.asarray(how.reduceat(how.reduceat(values, down, axis=1), across, axis=2))


def joined(labels: tuple[Label, ...], step: int) -> tuple[Label, ...]:
    """One label for each block of `step`, from its first token to its last."""
    return tuple(run(labels[at : at + step]) for at in range(0, len(labels), step))


def run(labels: Sequence[Label]) -> Label:
    first, last = labels[0], labels[-1]
    if len(labels) == 1:
        return first
    return Label(f"{first.text}…{last.text}", first.start, last.end)


def counted(number: int, thing: str, plural: str = "") -> str:
    """«1 head», «12 heads»."""
    return f"{number:,} {thing if number == 1 else plural or thing + 's'}"


def head_name(name: str) -> str:
    """The name as it is shown; a bare number says little, «head 3» says what it is."""
    return visible(f"head {name}" if name.isdigit() else name) if name else ""


KIND_NAMES = {
    "self": "self-attention",
    "cross": "cross-attention",
    "pool": "pooling",
    "memory": "memory",
    "image": "attention over an image",
    "senses": "sense weights",
}


def described(view: View) -> str:
    """What is in the picture, in words."""
    look = view.look
    sizes = [counted(len(look.queries), "query", "queries"), counted(len(look.keys), "key")]
    heads = [counted(len(look.heads), "head")] if len(look.heads) > 1 else []
    return " · ".join([KIND_NAMES[look.kind], *heads, " × ".join(sizes)])


def block_note(view: View) -> Iterable[str]:
    if not view.whole:
        down, across = view.block
        yield f"each square is the largest of {down} × {across} weights"
