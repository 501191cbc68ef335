"""A look made dense: the numbers of a map, ready for any pen.

A map too large to be drawn cell by cell is read in bands and drawn in blocks, each showing the
largest weight in it: an average would hide the very peaks somebody is looking for.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from regard.attention import Label, Look
from regard.looking.colours import Floats, Scale, extent
from regard.looking.tokens import visible

SIDE = 1_024  # squares along one side of a map, at most: one pixel each
ROOM = 4_000_000  # squares in one file, over all its heads and looks,
FAIR = 250_000  # but each look may have so many
BAND = 4_000_000  # weights in hand at once while a large map is read
SCALING_SHARE = 0.1  # of the keys the widest row sees: rows that see less do not set the scale


@dataclass(frozen=True, eq=False)
class View:
    """The part of a look that is drawn."""

    look: Look
    queries: tuple[Label, ...]
    keys: tuple[Label, ...]
    values: NDArray[np.float32]  # (head, query, key)
    hidden: NDArray[np.bool_]  # (head, query, key)
    sums: NDArray[np.float32]  # (head, query), or (head, 0) for blocks, whose sums mean nothing
    scale: Scale
    block: tuple[int, int] = (1, 1)  # queries and keys in one square

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
    scaling = scaling_rows(look, mask, range(queries))
    bands, free, forced = [], list[Floats](), list[Floats]()
    for at in range(0, queries, step):
        values, hidden = numbers(look, mask, range(at, min(at + step, queries)))
        own_free, own_forced = split(values, hidden, scaling[:, at : at + step])
        free.append(ends(own_free))
        forced.append(ends(own_forced))
        bands.append(pooled(values, hidden, block))
    return View(
        look,
        joined(look.queries, down),
        joined(look.keys, across),
        np.concatenate([values for values, _ in bands], axis=1),
        np.concatenate([hidden for _, hidden in bands], axis=1),
        np.zeros((heads, 0), np.float32),
        Scale.over(free, forced),
        block,
    )


def part(look: Look, queries: int, keys: int) -> View:
    """The first `queries` rows and the first `keys` columns, weight by weight."""
    mask = look.mask  # asked for once: it may have to be computed
    values, hidden = numbers(look, mask, range(queries))
    sums = values.sum(axis=2, dtype=np.float64).astype(np.float32)
    values, hidden = values[:, :, :keys], hidden[:, :, :keys]
    free, forced = split(values, hidden, scaling_rows(look, mask, range(queries)))
    labels = look.queries[:queries], look.keys[:keys]
    return View(look, *labels, values, hidden, sums, Scale.over([free], [forced]))


def scaling_rows(look: Look, mask: Tensor | None, rows: range) -> NDArray[np.bool_]:  # (head, row)
    """Which rows set the scale: those that see more than one key, and at least SCALING_SHARE of the
    keys that the widest row sees.

    The first word of a causal map has no choice but to give all its weight to itself, and the next
    ones must give half or a third to somebody. By that measure all other weights would look pale.
    """
    heads, keys = len(look.heads), len(look.keys)
    if mask is None:
        return np.full((heads, len(rows)), keys > 1)
    seen = mask.expand(-1, len(look.queries), keys)[:, rows.start : rows.stop].sum(dim=-1)
    counts = np.broadcast_to(seen.numpy(), (heads, len(rows)))
    return (counts > 1) & (counts >= SCALING_SHARE * counts.max(initial=0))


def split(
    values: Floats, hidden: NDArray[np.bool_], scaling: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """The visible weights of the rows that set the scale, and those of the others."""
    visible, rows = ~hidden, scaling[:, :, None]
    return values[visible & rows], values[visible & ~rows]


def ends(values: Floats) -> Floats:
    """The least and the greatest of them, which is all a scale has to know."""
    return np.array(extent([values]) or ())


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
    values: NDArray[np.float32], hidden: NDArray[np.bool_], block: tuple[int, int]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Of each block the weight that is farthest from zero; hidden where all of it is."""
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


def notes(view: View) -> Iterable[str]:
    """What else has to be known to read the colours."""
    if view.scale.clipped:
        yield "rows with one or few visible keys do not set the scale"
    if not view.whole:
        down, across = view.block
        yield f"each square is the largest of {down} × {across} weights"
