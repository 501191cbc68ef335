"""A look as heat maps: queries down the left side, keys along the top, one map a head.

Several heads are small multiples on one scale, with tokens on the outer axes only. Over an image
there is one map for each query instead, in the shape of the image.
"""

from collections.abc import Iterator
from math import ceil, sqrt

import numpy as np

from regard.attention import Label
from regard.looking import strips
from regard.looking.axes import across_the_top, down_the_side
from regard.looking.colours import FAINT, Scale
from regard.looking.drawing import Cells, Drawing, Mark, Text
from regard.looking.frame import HEAD, MARGIN, framed, number
from regard.looking.panels import Panel, panels
from regard.looking.tokens import clip
from regard.looking.views import View

WIDTH = 900  # of the maps side by side, when the tokens allow
NUMBERED = 12  # so many tokens a side, and every cell shows its number
WIDEST, NARROWEST, READABLE = 36, 1, 16
WHISPER = "#8d95a3"  # for numbers next to nothing, which would drown the others


def draw(view: View) -> Drawing:
    """The drawing of one look."""
    if strips.fits(view):
        return strips.draw(view)
    if not view.queries or not view.keys:
        return nothing(view)
    shown = panels(view)
    if shown[0].place.key_step:
        rows, columns = map(numbered, shown[0].values.shape)
        return arranged(view, shown, rows, columns, ("rows", "columns"))
    return arranged(view, shown, view.queries, view.keys, ("queries", "keys"))


def nothing(view: View) -> Drawing:
    missing = "query looks" if not view.queries else "key is there to be looked at"
    return framed(view, 0, HEAD + 30, [Text(MARGIN, HEAD + 16, f"no {missing}", colour=FAINT)])


def numbered(size: int) -> tuple[Label, ...]:
    return tuple(Label(str(at)) for at in range(size))


def arranged(
    view: View,
    shown: list[Panel],
    rows: tuple[Label, ...],
    columns: tuple[Label, ...],
    names: tuple[str, str],
) -> Drawing:
    """All panels in a grid of their own, the axes along its left and upper edge."""
    across = min(len(shown), ceil(sqrt(4 / 3 * len(shown))))
    width, height = cell_size(len(rows), len(columns), across)
    side = down_the_side(rows, height, names[0])
    top = across_the_top(columns, width, names[1])
    title_height = 20 if any(panel.title for panel in shown) else 0
    gap = max(14, width)
    left, upper = MARGIN + side.depth, HEAD + title_height + top.depth
    pitch = len(columns) * width + gap, len(rows) * height + gap + title_height
    marks: list[Mark] = []
    for at, panel in enumerate(shown):
        down, along = divmod(at, across)
        x, y = left + along * pitch[0], upper + down * pitch[1]
        title_y = y - 11 - (top.depth if down == 0 else 0)
        marks += titled(panel, x, title_y, pitch[0] - gap)
        marks += placed(panel, cells(panel, x, y, (width, height), view.scale))
        marks += side.labels(x, y) if along == 0 else []
        marks += top.labels(x, y) if down == 0 else []
    outer = left + across * pitch[0] - gap
    lower = upper + ceil(len(shown) / across) * pitch[1] - gap - title_height
    marks += [side.corner(left, upper), top.corner(left, upper)]
    skipped = [*side.note(), *top.note()]
    return framed(view, outer + top.overhang, lower, marks, skipped)


def cell_size(rows: int, columns: int, across: int) -> tuple[float, float]:
    """Square where both sides are readable; else each as large as its own side allows."""
    share = (WIDTH - 18 * (across - 1)) / across
    width, height = (fitting(size, share, across) for size in (columns, rows))
    if min(width, height) >= READABLE:
        return (min(width, height),) * 2
    return min(width, READABLE), min(height, READABLE)


def fitting(size: int, share: float, across: int) -> int:
    """Whole pixels: half ones would blur. Rather a wider sheet than tokens nobody can read."""
    widest_sheet = WIDTH if across == 1 else 420
    least = min(11, widest_sheet // size)
    return max(NARROWEST, least, min(WIDEST, int(share / size)))


def titled(panel: Panel, x: float, y: float, width: float) -> Iterator[Text]:
    if panel.title:
        room = max(4, int(width / (0.66 * 12)))
        yield Text(x, y, clip(panel.title, room), bold=True)


def cells(panel: Panel, x: float, y: float, size: tuple[float, float], scale: Scale) -> Cells:
    rows, columns = panel.values.shape
    edges = x + size[0] * np.arange(columns + 1), y + size[1] * np.arange(rows + 1)
    gap = 1 if min(size) >= 8 else 0
    return Cells(*edges, panel.values, panel.hidden, scale, gap, panel.place)


def placed(panel: Panel, mark: Cells) -> Iterator[Mark]:
    """The cells, with a number on each that may be looked at, when there is room for it."""
    yield mark
    rows, columns = panel.values.shape
    if max(rows, columns) > NUMBERED or mark.rectangles[0, 0, 2] < 29:
        return
    for row, column in np.argwhere(~panel.hidden):
        x, y, width, height = map(float, mark.rectangles[row, column])
        value = float(panel.values[row, column])
        colour = mark.scale.ink(value) if abs(value) >= 0.005 else WHISPER
        yield Text(x + width / 2, y + height / 2, number(value), 11, "middle", colour=colour)
