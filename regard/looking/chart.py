"""Curves in a terminal, drawn with the dots of Braille: two across and four down in every cell."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len
from rich.text import Text

from regard.looking.colours import CURVES
from regard.looking.scales import Range
from regard.looking.tokens import clip, isolated, visible

if TYPE_CHECKING:
    from regard.looking.curves import Curves

ROWS = 14
DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])  # (down, across)
BLANK = 0x2800
# Without colour, a curve is known by its dashes; with it, they only help.
DASHES = ("1", "1110", "10", "11110010")
SAMPLE = 4  # cells of a curve shown before its name


def chart(curves: "Curves", width: int, colour: bool) -> Iterator[Text]:
    """The lines that show some curves, none wider than `width`."""
    x, y = curves.axes
    ticks = {round((1 - y.share(value)) * (ROWS - 1)): name for value, name in y.ticks()}
    left = max(cell_len(name) for name in ticks.values()) + 1
    names = [clip(visible(name), min(20, width // 5)) for name in curves.series]
    columns = max(4, width - left - 1 - max(map(cell_len, names)) - SAMPLE - 2)
    layers = [dots(curves, at, x, y, columns) for at in range(len(names))]
    ends = named_rows(curves, y)
    yield Text(clip(visible(curves.title), width), style="bold" if colour else "")
    yield Text(clip(visible(curves.y_label) + " ↑", width))
    for row in range(ROWS):
        line = Text(f"{ticks.get(row, ''):>{left - 1}} {'┤' if row in ticks else '│'}")
        for column in range(columns):
            line.append(*cell([layer[row, column] for layer in layers], colour))
        if row in ends:
            at = ends[row]
            line.append(f" {sample(at)} ", CURVES[at % len(CURVES)] if colour else "")
            line.append(isolated(names[at]))
        yield line
    yield Text(" " * left + "└" + "─" * columns)
    yield Text(" " * (left + 1) + below(x, columns))
    yield Text(clip(f"{visible(curves.x_label)} →", width))


def dots(
    curves: "Curves", at: int, x: Range, y: Range, columns: int
) -> NDArray[np.int_]:  # (row, column)
    """The dots of one curve, as the bits of each cell."""
    held = np.zeros((4 * ROWS, 2 * columns), bool)
    before: tuple[int, int] | None = None
    gone = 0  # steps along the curve, by which its dashes are counted
    for along, value in curves.points(list(curves.series)[at]):
        if not curves.shown(value):
            before = None
            continue
        across = round(x.share(along) * (2 * columns - 1))
        here = across, round((1 - y.share(value)) * (4 * ROWS - 1))
        for across, down in way(before or here, here):
            held[down, across] |= dash(at, gone)
            gone += 1
        before = here
    return bits(held)


def way(start: tuple[int, int], end: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Every dot on the straight way, without the one it starts from unless it ends there."""
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]))
    for step in range(1 if steps else 0, steps + 1):
        part = step / max(steps, 1)
        yield (
            round(start[0] + (end[0] - start[0]) * part),
            round(start[1] + (end[1] - start[1]) * part),
        )


def dash(at: int, step: int) -> bool:
    pattern = DASHES[at % len(DASHES)]
    return pattern[step % len(pattern)] == "1"


def bits(held: NDArray[np.bool_]) -> NDArray[np.int_]:  # (row, column)
    parts = held.reshape(held.shape[0] // 4, 4, held.shape[1] // 2, 2)
    return np.asarray((parts * DOTS[None, :, None, :]).sum(axis=(1, 3)))


def sample(at: int) -> str:
    """A piece of the curve, level."""
    held = np.zeros((4, 2 * SAMPLE), bool)
    held[2] = [dash(at, step) for step in range(2 * SAMPLE)]
    return "".join(chr(BLANK + own) for own in bits(held)[0])


def cell(layers: list[int], colour: bool) -> tuple[str, str]:
    """All curves that pass, in the colour of the last of them."""
    last = max((at for at, own in enumerate(layers) if own), default=None)
    together = int(np.bitwise_or.reduce(layers))
    style = CURVES[last % len(CURVES)] if colour and last is not None else ""
    return chr(BLANK + together) if together else " ", style


def named_rows(curves: "Curves", y: Range) -> dict[int, int]:
    """The row beside which each curve is named: that of its last value, or the nearest free."""
    taken: dict[int, int] = {}
    for at, name in enumerate(curves.series):
        last = [value for _, value in curves.points(name) if curves.shown(value)][-1]
        wished = round((1 - y.share(last)) * (ROWS - 1))
        free = [row for row in range(ROWS) if row not in taken]
        if free:
            taken[min(free, key=lambda row: abs(row - wished))] = at
    return taken


def below(x: Range, columns: int) -> str:
    """The named values of x, as many as stand apart."""
    line = ""
    for value, name in x.ticks():
        start = round(x.share(value) * (columns - 1)) - len(name) // 2
        start = min(max(start, 0), columns - len(name))
        if start > len(line) or not line:
            line += " " * (start - len(line)) + name
    return line
