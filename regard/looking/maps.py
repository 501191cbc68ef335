"""A look as heat maps: queries down the left side, keys along the top, one map a head.

Several heads are small multiples on one scale, with tokens on the outer axes only. Over an image
there is one map for each query instead, in the shape of the image.
"""

from collections.abc import Iterator
from math import ceil, sqrt

import numpy as np
from torch import Tensor

from regard.attention import Label
from regard.looking import episodes, strips
from regard.looking.axes import column_axis, row_axis
from regard.looking.colours import FAINT, Scale
from regard.looking.documents import DocumentView, draw_document
from regard.looking.drawing import Cells, Drawing, Mark, Picture, Text
from regard.looking.frame import HEAD_HEIGHT, MARGIN, format_weight, frame
from regard.looking.panels import MAX_NUMBERED_TOKENS, Panel, make_panels
from regard.looking.tokens import clip
from regard.looking.views import View, side_names

MAPS_WIDTH = 900  # of the maps side by side, when the tokens allow
MAX_CELL_SIZE, MIN_CELL_SIZE, READABLE_CELL_SIZE = 36, 1, 16
NEAR_ZERO_COLOUR = "#8d95a3"  # for numbers next to nothing, which would drown the others


def draw_view(view: View) -> Drawing:
    """The drawing of one look."""
    if isinstance(view, DocumentView):
        return draw_document(view)
    if strips.is_strip(view):
        return strips.draw_strip(view)
    if not view.queries or not view.keys:
        return draw_empty(view)
    if view.look.kind == "episode":
        return episodes.draw_episode(view)
    panels = make_panels(view)
    if panels[0].place.key_step:
        rows, columns = map(number_labels, panels[0].values.shape)
        return arrange(view, panels, rows, columns, ("rows", "columns"), view.look.image)
    return arrange(view, panels, view.queries, view.keys, side_names(view.look))


def draw_empty(view: View) -> Drawing:
    """Words in place of a map without rows or without columns."""
    missing = "query looks" if not view.queries else "key is there to be looked at"
    words = Text(MARGIN, HEAD_HEIGHT + 16, f"no {missing}", colour=FAINT)
    return frame(view, 0, HEAD_HEIGHT + 30, [words])


def number_labels(size: int) -> tuple[Label, ...]:
    """0, 1, 2 … along the side of an image."""
    return tuple(Label(str(at)) for at in range(size))


def arrange(
    view: View,
    panels: list[Panel],
    rows: tuple[Label, ...],
    columns: tuple[Label, ...],
    names: tuple[str, str],
    image: Tensor | None = None,
) -> Drawing:
    """All panels in a grid of their own, the axes along its left and upper edge; first the image
    they are over, if there is one."""
    before = 0 if image is None else 1
    count = before + len(panels)
    down = ceil(count / ceil(sqrt(4 / 3 * count)))
    across = ceil(count / down)  # of as many rows the fewest columns, so that none stays empty
    width, height = choose_cell_size(len(rows), len(columns), across)
    side = row_axis(rows, height, names[0])
    top = column_axis(columns, width, names[1])
    title_height = 20 if any(panel.title for panel in panels) else 0
    gap = max(14, width)
    left, upper = MARGIN + side.depth, HEAD_HEIGHT + title_height + top.depth
    pitch = len(columns) * width + gap, len(rows) * height + gap + title_height
    marks: list[Mark] = []
    if image is not None:
        size = pitch[0] - gap, pitch[1] - gap - title_height
        marks.append(Text(left, upper - 11 - top.depth, "image", bold=True))
        marks.append(Picture(left, upper, *size, image.cpu().numpy()))
        marks += [*side.labels(left, upper), *top.labels(left, upper)]
    for at, panel in enumerate(panels, start=before):
        row, along = divmod(at, across)
        x, y = left + along * pitch[0], upper + row * pitch[1]
        title_y = y - 11 - (top.depth if row == 0 else 0)
        marks += draw_title(panel, x, title_y, pitch[0] - gap)
        marks += draw_cells(panel, make_cells(panel, x, y, (width, height), view.scale))
        marks += side.labels(x, y) if along == 0 else []
        marks += top.labels(x, y) if row == 0 else []
    outer = left + across * pitch[0] - gap
    lower = upper + down * pitch[1] - gap - title_height
    marks += [side.draw_name(left, upper), top.draw_name(left, upper)]
    notes = [*side.notes(), *top.notes()]
    return frame(view, outer + top.overhang, lower, marks, notes)


def choose_cell_size(rows: int, columns: int, across: int) -> tuple[float, float]:
    """Width and height of a cell: square where both are readable, else each as large as it can."""
    share = (MAPS_WIDTH - 18 * (across - 1)) / across
    width, height = (fit_cell_side(count, share, across) for count in (columns, rows))
    if min(width, height) >= READABLE_CELL_SIZE:
        return (min(width, height),) * 2
    return min(width, READABLE_CELL_SIZE), min(height, READABLE_CELL_SIZE)


def fit_cell_side(count: int, share: float, across: int) -> int:
    """The side of a cell, when `count` of them have `share` pixels together.

    Whole pixels: half ones would blur. Rather a wider sheet than tokens nobody can read.
    """
    widest_sheet = MAPS_WIDTH if across == 1 else 420
    least = min(11, widest_sheet // count)
    return max(MIN_CELL_SIZE, least, min(MAX_CELL_SIZE, int(share / count)))


def draw_title(panel: Panel, x: float, y: float, width: float) -> Iterator[Text]:
    """The title of a map, cut to its width; nothing for a map without one."""
    if panel.title:
        letters = max(4, int(width / (0.66 * 12)))
        yield Text(x, y, clip(panel.title, letters), bold=True)


def make_cells(panel: Panel, x: float, y: float, size: tuple[float, float], scale: Scale) -> Cells:
    """The cells of a map whose upper left corner is (x, y)."""
    rows, columns = panel.values.shape
    edges = x + size[0] * np.arange(columns + 1), y + size[1] * np.arange(rows + 1)
    gap = 1 if min(size) >= 8 else 0
    return Cells(*edges, panel.values, panel.hidden, scale, gap, panel.place)


def draw_cells(panel: Panel, mark: Cells) -> Iterator[Mark]:
    """The cells, with a number on each that may be looked at, when there is room for it."""
    yield mark
    rows, columns = panel.values.shape
    if max(rows, columns) > MAX_NUMBERED_TOKENS or mark.rectangles[0, 0, 2] < 29:
        return
    for row, column in np.argwhere(~panel.hidden):
        x, y, width, height = map(float, mark.rectangles[row, column])
        value = float(panel.values[row, column])
        colour = mark.scale.text_colour(value) if abs(value) >= 0.005 else NEAR_ZERO_COLOUR
        yield Text(x + width / 2, y + height / 2, format_weight(value), 11, "middle", colour=colour)
