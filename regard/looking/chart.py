"""Curves in a terminal, drawn with the dots of Braille: two across and four down in every cell."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len
from rich.text import Text

from regard.looking.colours import CURVE_COLOURS
from regard.looking.scales import Range
from regard.looking.tokens import clip, isolate, make_visible

if TYPE_CHECKING:
    from regard.looking.curves import Curves

CHART_ROWS = 14
BRAILLE_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])  # (down, across)
BRAILLE_BLANK = 0x2800
# Without colour, a curve is known by its dashes; with it, they only help.
DASHES = ("1", "1110", "10", "11110010")
SAMPLE_CELLS = 4  # cells of a curve shown before its name


def render_chart(curves: "Curves", width: int, colour: bool) -> Iterator[Text]:
    """The lines that show some curves, none wider than `width`."""
    x, y = curves.axes
    ticks = {round((1 - y.fraction(value)) * (CHART_ROWS - 1)): name for value, name in y.ticks()}
    left = max(cell_len(name) for name in ticks.values()) + 1
    names = [clip(make_visible(name), min(20, width // 5)) for name in curves.series]
    columns = max(4, width - left - 1 - max(map(cell_len, names)) - SAMPLE_CELLS - 2)
    layers = [rasterise(curves, at, x, y, columns) for at in range(len(names))]
    named = assign_name_rows(curves, y)
    yield Text(clip(make_visible(curves.title), width), style="bold" if colour else "")
    yield Text(clip(make_visible(curves.y_label) + " ↑", width))
    for row in range(CHART_ROWS):
        line = Text(f"{ticks.get(row, ''):>{left - 1}} {'┤' if row in ticks else '│'}")
        for column in range(columns):
            line.append(*combine_cells([layer[row, column] for layer in layers], colour))
        if row in named:
            at = named[row]
            style = CURVE_COLOURS[at % len(CURVE_COLOURS)] if colour else ""
            line.append(f" {render_sample(at)} ", style)
            line.append(isolate(names[at]))
        yield line
    yield Text(" " * left + "└" + "─" * columns)
    yield Text(" " * (left + 1) + render_x_ticks(x, columns))
    yield Text(clip(f"{make_visible(curves.x_label)} →", width))


def rasterise(
    curves: "Curves", at: int, x: Range, y: Range, columns: int
) -> NDArray[np.int_]:  # (row, column)
    """The dots of one curve, as the bits of each cell."""
    dots = np.zeros((4 * CHART_ROWS, 2 * columns), bool)
    before: tuple[int, int] | None = None
    step = 0  # along the curve, by which its dashes are counted
    for along, value in curves.points(list(curves.series)[at]):
        if not curves.is_drawable(value):
            before = None
            continue
        across = round(x.fraction(along) * (2 * columns - 1))
        here = across, round((1 - y.fraction(value)) * (4 * CHART_ROWS - 1))
        for across, down in straight_line(before or here, here):
            dots[down, across] |= in_dash(at, step)
            step += 1
        before = here
    return pack_braille(dots)


def straight_line(start: tuple[int, int], end: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Every dot on the line between two, without the first unless it is the last, too."""
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]))
    for step in range(1 if steps else 0, steps + 1):
        part = step / max(steps, 1)
        yield (
            round(start[0] + (end[0] - start[0]) * part),
            round(start[1] + (end[1] - start[1]) * part),
        )


def in_dash(at: int, step: int) -> bool:
    """Whether the curve at this index has a dot after so many steps, or a gap."""
    pattern = DASHES[at % len(DASHES)]
    return pattern[step % len(pattern)] == "1"


def pack_braille(dots: NDArray[np.bool_]) -> NDArray[np.int_]:  # (row, column)
    """The bits of each Braille cell from its dots, (4 × rows, 2 × columns)."""
    parts = dots.reshape(dots.shape[0] // 4, 4, dots.shape[1] // 2, 2)
    return np.asarray((parts * BRAILLE_BITS[None, :, None, :]).sum(axis=(1, 3)))


def render_sample(at: int) -> str:
    """A level piece of the curve at this index, to stand before its name."""
    dots = np.zeros((4, 2 * SAMPLE_CELLS), bool)
    dots[2] = [in_dash(at, step) for step in range(2 * SAMPLE_CELLS)]
    return "".join(chr(BRAILLE_BLANK + bits) for bits in pack_braille(dots)[0])


def combine_cells(layers: list[int], colour: bool) -> tuple[str, str]:
    """The character that shows all curves in a cell, in the colour of the last of them."""
    last = max((at for at, bits in enumerate(layers) if bits), default=None)
    bits = int(np.bitwise_or.reduce(layers))
    style = CURVE_COLOURS[last % len(CURVE_COLOURS)] if colour and last is not None else ""
    return chr(BRAILLE_BLANK + bits) if bits else " ", style


def assign_name_rows(curves: "Curves", y: Range) -> dict[int, int]:
    """The row beside which each curve is named: that of its last value, or the nearest free."""
    taken: dict[int, int] = {}
    for at, name in enumerate(curves.series):
        last = [value for _, value in curves.points(name) if curves.is_drawable(value)][-1]
        wanted = round((1 - y.fraction(last)) * (CHART_ROWS - 1))
        free = [row for row in range(CHART_ROWS) if row not in taken]
        if free:
            taken[min(free, key=lambda row: abs(row - wanted))] = at
    return taken


def render_x_ticks(x: Range, columns: int) -> str:
    """The line of named values below the x axis, as many as stand apart."""
    line = ""
    for value, name in x.ticks():
        start = round(x.fraction(value) * (columns - 1)) - len(name) // 2
        start = min(max(start, 0), columns - len(name))
        if start > len(line) or not line:
            line += " " * (start - len(line)) + name
    return line
