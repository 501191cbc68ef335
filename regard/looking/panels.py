"""The maps a look consists of: one a head, or over an image one a query."""

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
    return [
        Panel(head_name(name), view.values[head], view.hidden[head], Place(head))
        for head, name in enumerate(view.look.heads)
    ]


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
