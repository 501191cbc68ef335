"""The maps a look consists of: one a head, or over an image one a query.

The maps of an episode have rows of their own, as many as are not hidden at every step.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.looking.colours import Floats
from regard.looking.drawing import Place
from regard.looking.tokens import clip, make_visible
from regard.looking.views import View, head_name

MAX_IMAGE_PANELS = 120  # maps over an image on one sheet; were there more, they become rows of one
MAX_NUMBERED_TOKENS = 12  # so many a side, and every cell shows its number


@dataclass(frozen=True, eq=False)
class Panel:
    """One map of several."""

    title: str
    values: Floats  # (row, column)
    hidden: NDArray[np.bool_]  # (row, column)
    place: Place


def make_panels(view: View) -> list[Panel]:
    """The maps of a view, in the order in which they are drawn."""
    images = len(view.look.heads) * len(view.queries)
    if view.look.grid is not None and not view.in_blocks and images <= MAX_IMAGE_PANELS:
        return make_image_panels(view, view.look.grid)
    rows = count_rows(view)
    return [
        Panel(head_name(name), view.values[head, :own], view.hidden[head, :own], Place(head))
        for head, (name, own) in enumerate(zip(view.look.heads, rows, strict=True))
    ]


def count_rows(view: View) -> list[int]:
    """How many rows each map has; one of an episode, up to the last that ever shows anything."""
    look, shown = view.look, len(view.queries)
    if look.kind != "episode" or look.mask is None:
        return [shown] * len(look.heads)
    ever = look.mask.expand(len(look.heads), -1, -1).any(dim=-1)  # (map, row)
    lasts = [int(each.nonzero().max()) if each.any() else 0 for each in ever]
    return [min(shown, last // view.block[0] + 1) for last in lasts]


def is_hatched(view: View) -> bool:
    """Whether a map of the view has a hidden cell."""
    return any(panel.hidden.any() for panel in make_panels(view))


def make_image_panels(view: View, grid: tuple[int, int]) -> list[Panel]:
    """One map for each query of each head, in the shape of the image."""
    return [
        Panel(
            " · ".join(filter(None, [clip(make_visible(label.text), 14), head_name(name)])),
            view.values[head, query].reshape(grid),
            view.hidden[head, query].reshape(grid),
            Place(head, query, query_step=0, key_step=grid[1]),
        )
        for head, name in enumerate(view.look.heads)
        for query, label in enumerate(view.queries)
    ]
