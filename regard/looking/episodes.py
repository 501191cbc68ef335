"""An episode of a machine with a memory: what went in and out, and where, over one axis of time.

Maps stand two abreast, each with rows of its own: bits of a vector, numbers of a slot, places of
the memory. Graves, Wayne & Danihelka (2014), figures 6 and 13.
"""

from collections.abc import Iterator

import numpy as np

from regard.looking.axes import Axis, column_axis
from regard.looking.colours import FAINT
from regard.looking.drawing import Cells, Drawing, Mark, Text
from regard.looking.frame import HEAD_HEIGHT, MARGIN, frame
from regard.looking.panels import Panel, make_panels
from regard.looking.views import View

ACROSS = 2
MAP_WIDTH, MAX_MAP_HEIGHT = 480, 400  # pixels, when there are cells enough
MAX_CELL_SIZE, MIN_CELL_SIZE = 12, 2
TITLE_HEIGHT, GAP = 24, 18
SIDE_WIDTH = 34  # for the numbers of the rows, left of a map


def draw_episode(view: View) -> Drawing:
    """The drawing of an episode: its maps in reading order, steps from left to right."""
    panels = make_panels(view)
    width = fit_cell(len(view.keys), MAP_WIDTH)
    time = column_axis(view.keys, width, "steps")
    pitch = len(view.keys) * width + SIDE_WIDTH + GAP
    marks: list[Mark] = []
    y = HEAD_HEIGHT + time.depth
    for first in range(0, len(panels), ACROSS):
        beside = panels[first : first + ACROSS]
        heights = [len(panel.values) * fit_cell(len(panel.values)) for panel in beside]
        for at, panel in enumerate(beside):
            x = MARGIN + SIDE_WIDTH + at * pitch
            marks += draw_panel(view, panel, x, y + TITLE_HEIGHT, width)
            if first == 0:
                marks += draw_time(time, x, y + TITLE_HEIGHT)
        y += TITLE_HEIGHT + max(heights) + GAP
    across = min(ACROSS, len(panels))
    return frame(view, MARGIN + across * pitch - GAP, y - GAP, marks, time.notes())


def fit_cell(count: int, pixels: int = MAX_MAP_HEIGHT) -> int:
    """The side of a cell when `count` of them share so many pixels."""
    return max(MIN_CELL_SIZE, min(MAX_CELL_SIZE, pixels // count))


def draw_panel(view: View, panel: Panel, x: float, y: float, width: int) -> Iterator[Mark]:
    """One map with its title above and the numbers of its first and last row beside it."""
    rows, columns = panel.values.shape
    height = fit_cell(rows)
    yield Text(x, y - TITLE_HEIGHT / 2, panel.title, bold=True)
    edges = x + width * np.arange(columns + 1), y + height * np.arange(rows + 1)
    gap = 1 if min(width, height) >= 8 else 0
    yield Cells(*edges, panel.values, panel.hidden, view.scale, gap, panel.place)
    for row in {0, rows - 1}:
        label = view.queries[row].text
        yield Text(x - 6, y + (row + 0.5) * height, label, 10, "end", colour=FAINT)


def draw_time(time: Axis, x: float, y: float) -> list[Mark]:
    """The steps above the first maps, over their titles."""
    return [mark.shift(0, -TITLE_HEIGHT) for mark in time.labels(x, y)]
