"""A look made dense: the numbers of a map, ready to be drawn.

A map too large to be drawn cell by cell is read in bands and drawn in blocks, each showing the
largest weight in it: an average would hide the very peaks somebody is looking for.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.attention import Label, Look
from regard.looking.colours import Floats, Scale, find_extent
from regard.looking.tokens import drop_word_marks, make_visible

MAX_SIDE = 1_024  # cells along one side of a map: one pixel each
MAX_CELLS_PER_FILE = 4_000_000  # over all its heads and looks,
GUARANTEED_CELLS_PER_LOOK = 250_000  # but each look may have so many, however many there are
MAX_WEIGHTS_IN_MEMORY = 1_000_000  # at once, while a large map is read
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
    block: tuple[int, int] = (1, 1)  # queries and keys in one cell
    caption: str = ""  # what it shows, where that is not how many queries look at how many keys

    @property
    def terms(self) -> "Terms":
        """What its rows, columns, maps and numbers are called."""
        return terms_of(self.look)

    @property
    def in_blocks(self) -> bool:
        """Whether a cell stands for several weights."""
        return self.block != (1, 1)


def make_views(looks: Sequence[Look]) -> list[View]:
    """The views of looks that share one file, and its cells."""
    share = MAX_CELLS_PER_FILE // max(1, len(looks))
    return [make_view(look, max(GUARANTEED_CELLS_PER_LOOK, share)) for look in looks]


def make_view(look: Look, max_cells: int = MAX_CELLS_PER_FILE) -> View:
    """The view of a whole look, in blocks where it is too large to be drawn weight by weight."""
    heads, queries, keys = len(look.heads), len(look.queries), len(look.keys)
    block = choose_block(heads, queries, keys, max_cells)
    if block == (1, 1):
        return make_part_view(look, queries, keys)
    down, across = block
    band = down * max(1, MAX_WEIGHTS_IN_MEMORY // max(1, heads * keys * down))
    parts = [range(at, min(at + band, queries)) for at in range(0, queries, band)]
    scaling = scaling_rows(np.concatenate([count_visible(look, rows) for rows in parts], axis=1))
    bands, free, forced = [], list[Floats](), list[Floats]()
    for rows in parts:
        values, hidden = read_rows(look, rows)
        own = scaling[:, rows.start : rows.stop]
        band_free, band_forced = split_by_scaling(values, hidden, own)
        free.append(find_extremes(band_free))
        forced.append(find_extremes(band_forced))
        bands.append(pool_blocks(values, hidden, block))
    return View(
        look,
        label_blocks(look.queries, down),
        label_blocks(look.keys, across),
        np.concatenate([values for values, _ in bands], axis=1),
        np.concatenate([hidden for _, hidden in bands], axis=1),
        np.zeros((heads, 0), np.float32),
        Scale.fit(free, forced),
        block,
    )


def make_part_view(look: Look, queries: int, keys: int) -> View:
    """The view of the first `queries` rows and the first `keys` columns, weight by weight."""
    values, hidden = read_rows(look, range(queries))
    sums = values.sum(axis=2, dtype=np.float64).astype(np.float32)
    if look.kind in NO_ATTENTION:
        sums = sums[:, :0]  # it means nothing
    values, hidden = values[:, :, :keys], hidden[:, :, :keys]
    scaling = scaling_rows(count_visible(look, range(queries)))
    free, forced = split_by_scaling(values, hidden, scaling)
    all_queries, all_keys = drop_word_marks(look.queries, look.keys)
    labels = all_queries[:queries], all_keys[:keys]
    return View(look, *labels, values, hidden, sums, Scale.fit([free], [forced]))


def count_visible(look: Look, rows: range) -> NDArray[np.int64]:  # (head, row)
    """How many keys each of these rows may see."""
    heads, keys = len(look.heads), len(look.keys)
    mask = look.mask_of(rows=slice(rows.start, rows.stop))
    if mask is None:
        return np.full((heads, len(rows)), keys)
    seen = mask.expand(-1, len(rows), keys).sum(dim=-1)
    return np.broadcast_to(seen.numpy(), (heads, len(rows)))


def scaling_rows(counts: NDArray[np.int64]) -> NDArray[np.bool_]:  # (head, row)
    """Which rows set the scale: those that see more than one key, and at least SCALING_SHARE of the
    keys that the widest row sees.

    The first word of a causal map has no choice but to give all its weight to itself, and the next
    ones must give half or a third to somebody. By that measure all other weights would look pale.
    """
    return (counts > 1) & (counts >= SCALING_SHARE * counts.max(initial=0))


def split_by_scaling(
    values: Floats, hidden: NDArray[np.bool_], scaling: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """The visible weights of the rows that set the scale, and those of the others."""
    visible, rows = ~hidden, scaling[:, :, None]
    return values[visible & rows], values[visible & ~rows]


def find_extremes(values: Floats) -> Floats:
    """The least and the greatest of them, which is all a scale has to know."""
    return np.array(find_extent([values]) or ())


def read_rows(look: Look, rows: range) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Weights and hidden cells of some rows, both (head, row, key)."""
    wanted = slice(rows.start, rows.stop)
    values, mask = look.weights_of(rows=wanted).numpy(), look.mask_of(rows=wanted)
    if not np.isfinite(values).all():
        head, row, key = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(
            f"{look.path}: the weight of head {head}, query {rows.start + row}, key {key} is "
            f"{values[head, row, key]}; a picture needs finite numbers"
        )
    if mask is None:
        return values, np.zeros(values.shape, bool)
    return values, ~mask.expand(values.shape).numpy()


def choose_block(heads: int, queries: int, keys: int, max_cells: int) -> tuple[int, int]:
    """The smallest blocks with which a map fits."""
    down, across = max(1, -(-queries // MAX_SIDE)), max(1, -(-keys // MAX_SIDE))
    while heads * -(-queries // down) * -(-keys // across) > max_cells:
        if queries // down > keys // across:
            down += 1
        else:
            across += 1
    return down, across


def pool_blocks(
    values: NDArray[np.float32], hidden: NDArray[np.bool_], block: tuple[int, int]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Of each block the weight that is farthest from zero; hidden where all of it is."""
    values = np.where(hidden, np.float32(0), values)
    high = reduce_blocks(np.maximum, values, block)
    low = reduce_blocks(np.minimum, values, block)
    return np.where(-low > high, low, high), reduce_blocks(np.logical_and, hidden, block)


def reduce_blocks(
    operation: np.ufunc, values: NDArray[Any], block: tuple[int, int]
) -> NDArray[Any]:  # (head, row of blocks, column of blocks)
    """The operation over each block, as the maximum of it."""
    down, across = (
        np.arange(0, size, step) for size, step in zip(values.shape[1:], block, strict=True)
    )
    return np.asarray(operation.reduceat(operation.reduceat(values, down, axis=1), across, axis=2))


def label_blocks(labels: tuple[Label, ...], step: int) -> tuple[Label, ...]:
    """One label for each block of `step`, from its first token to its last."""
    return tuple(join_labels(labels[at : at + step]) for at in range(0, len(labels), step))


def join_labels(labels: Sequence[Label]) -> Label:
    """One label from the first token to the last."""
    first, last = labels[0], labels[-1]
    if len(labels) == 1:
        return first
    return Label(f"{first.text}…{last.text}", first.start, last.end)


def format_count(number: int, thing: str, plural: str = "") -> str:
    """«1 head», «12 heads»."""
    return f"{number:,} {thing if number == 1 else plural or thing + 's'}"


def head_name(name: str) -> str:
    """The name of a head as it is shown; a bare number says little, «head 3» says what it is."""
    return make_visible(f"head {name}" if name.isdigit() else name) if name else ""


KIND_NAMES = {
    "self": "self-attention",
    "cross": "cross-attention",
    "pool": "pooling",
    "memory": "memory",
    "image": "attention over an image",
    "senses": "sense weights",
    "gates": "gates over time",
    "episode": "an episode over time",
    "layer": "a layer",
    "other": "attention",
}


@dataclass(frozen=True)
class Terms:
    """What the rows, columns, maps and numbers of a look are called."""

    rows: tuple[str, str]  # one, several
    columns: tuple[str, str]
    map: str
    value: str
    hidden: str


ATTENTION = Terms(("query", "queries"), ("key", "keys"), "head", "weight", "masked: may not look")
SENSES = replace(ATTENTION, map="sense")
NO_ATTENTION = {
    "gates": Terms(("unit", "units"), ("step", "steps"), "gate", "value", "masked"),
    "episode": Terms(("row", "rows"), ("step", "steps"), "map", "value", "not asked for"),
    "layer": Terms(("unit", "units"), ("column", "columns"), "map", "value", "no connection"),
}
"""Kinds in which nothing is looked at, so that no row is a share of anything."""


def terms_of(look: Look) -> Terms:
    return {**NO_ATTENTION, "senses": SENSES}.get(look.kind, ATTENTION)


def describe_view(view: View) -> str:
    """What a view shows, in words: self-attention · 12 heads · 5 queries × 5 keys."""
    if view.caption:
        return view.caption
    look, terms = view.look, view.terms
    rows = format_count(len(look.queries), *terms.rows)
    columns = format_count(len(look.keys), *terms.columns)
    heads = [format_count(len(look.heads), terms.map)] if len(look.heads) > 1 else []
    return " · ".join([KIND_NAMES[look.kind], *heads, f"{rows} × {columns}"])


def side_names(look: Look) -> tuple[str, str]:
    """What rows and columns are called."""
    terms = terms_of(look)
    return terms.rows[1], terms.columns[1]


def describe_scaling(view: View) -> Iterable[str]:
    """Notes for the legend: which rows set the scale, and what a block shows."""
    if view.scale.clipped:
        yield "rows with one or few visible keys do not set the scale"
    if view.in_blocks:
        down, across = view.block
        yield f"each square is the largest of {down} × {across} weights"
