"""The maps a look consists of: one a head, or over an image one a query."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.looking.colours import Floats
from regard.looking.drawing import Place
from regard.looking.tokens import clip, visible
from regard.looking.views import View, head_name

IMAGES = 120  # pictures of an image on one sheet; were there more, they become rows of a matrix


@dataclass(frozen=True, eq=False)
class Panel:
    """One map of several."""

    title: str
    values: Floats  # (row, column)
    hidden: NDArray[np.bool_]  # (row, column)
    place: Place


def panels(view: View) -> list[Panel]:
    images = len(view.look.heads) * len(view.queries)
    if view.look.grid is not None and view.whole and images <= IMAGES:
        return over_an_image(view, view.look.grid)
    return [
        Panel(head_name(name), view.values[head], view.hidden[head], Place(head))
        for head, name in enumerate(view.look.heads)
    ]


def over_an_image(view: View, grid: tuple[int, int]) -> list[Panel]:
    """What each query of each head sees, in the shape of the image."""
    return [
        Panel(
            " · ".join(filter(None, [clip(visible(label.text), 14), head_name(name)])),
            view.values[head, query].reshape(grid),
            view.hidden[head, query].reshape(grid),
            Place(head, query, query_step=0, key_step=grid[1]),
        )
        for head, name in enumerate(view.look.heads)
        for query, label in enumerate(view.queries)
    ]
