"""The geometry of a picture, which all renderers share.

A `Drawing` is geometry alone: lengths in CSS pixels, y downward, and four sorts of marks. SVG, PNG
and PDF are rendered from the same drawing, so they cannot disagree about where anything is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import cos, radians, sin

import numpy as np
from numpy.typing import NDArray

from regard.looking.colours import INK, Floats, Scale
from regard.looking.tokens import direction

MAX_RECTANGLES = 20_000  # in one drawing; more cells are drawn as images: the same picture, sooner


@dataclass(frozen=True)
class Text:
    """One line of text whose middle line passes through (x, y)."""

    x: float
    y: float
    text: str
    size: float = 12
    anchor: str = "start"  # which end of it is at x: start (the left), middle, end (the right)
    rotation: float = 0  # degrees, clockwise
    colour: str = INK
    bold: bool = False
    width: float | None = None  # readers whose font is narrower or wider fit the letters in

    @property
    def direction(self) -> str:
        """`ltr` or `rtl`, by its first letter."""
        return direction(self.text)

    @property
    def baseline(self) -> tuple[float, float]:
        """Where the letters stand: a third of their size below the middle line."""
        turn = radians(self.rotation)
        drop = 0.35 * self.size
        return self.x - drop * sin(turn), self.y + drop * cos(turn)

    def shift(self, x: float, y: float) -> "Text":
        return replace(self, x=self.x + x, y=self.y + y)


@dataclass(frozen=True)
class Line:
    """Straight from point to point."""

    points: tuple[tuple[float, float], ...]
    colour: str = INK
    width: float = 1
    dash: tuple[float, ...] = ()

    def shift(self, x: float, y: float) -> "Line":
        return replace(self, points=tuple((x + at, y + down) for at, down in self.points))


@dataclass(frozen=True)
class Place:
    """Which weights the cells of a map are: row r, column c is the weight of `head` from
    query `query + r * query_step` to key `key + r * key_step + c * key_across`."""

    head: int
    query: int = 0
    key: int = 0
    query_step: int = 1
    key_step: int = 0
    key_across: int = 1


@dataclass(frozen=True, eq=False)
class Cells:
    """A rectangle of coloured cells; the hidden ones are hatched."""

    x: Floats  # (column + 1): the edges, left to right
    y: Floats  # (row + 1): the edges, top to bottom
    values: Floats  # (row, column)
    hidden: NDArray[np.bool_]  # (row, column)
    scale: Scale
    gap: float = 0  # left free between neighbours
    place: Place | None = None  # None: they stand for no weights, as in a legend

    def shift(self, x: float, y: float) -> "Cells":
        return replace(self, x=self.x + x, y=self.y + y)

    @property
    def box(self) -> tuple[float, float, float, float]:
        """x, y, width, height."""
        left, top = float(self.x[0]), float(self.y[0])
        return left, top, float(self.x[-1]) - left, float(self.y[-1]) - top

    @cached_property
    def rectangles(self) -> Floats:  # (row, column, x y width height)
        """Each cell without the gap around it."""
        x, y = np.meshgrid(self.x[:-1], self.y[:-1])
        width, height = np.meshgrid(np.diff(self.x), np.diff(self.y))
        half = self.gap / 2
        return np.stack([x + half, y + half, width - self.gap, height - self.gap], axis=-1)

    @cached_property
    def levels(self) -> NDArray[np.uint8]:  # (row, column)
        """The index of each cell's colour in the palette."""
        return self.scale.levels(self.values)


@dataclass(frozen=True, eq=False)
class Picture:
    """An image, stretched over a rectangle."""

    x: float
    y: float
    width: float
    height: float
    pixels: NDArray[np.uint8]  # (row, column, red green blue)

    def shift(self, x: float, y: float) -> "Picture":
        return replace(self, x=self.x + x, y=self.y + y)


Mark = Text | Line | Cells | Picture


@dataclass(frozen=True, eq=False)
class Drawing:
    """Marks on a sheet, later ones over earlier ones. `name` says in words what is to be seen."""

    width: float
    height: float
    marks: tuple[Mark, ...]
    name: str

    @cached_property
    def maps(self) -> list[Cells]:
        """The cells that stand for weights."""
        return [mark for mark in self.marks if isinstance(mark, Cells) and mark.place]

    @cached_property
    def as_images(self) -> bool:
        """Whether maps are drawn as images rather than rectangle by rectangle."""
        return sum(cells.values.size for cells in self.maps) > MAX_RECTANGLES


def stack(drawings: Sequence[Drawing]) -> Drawing:
    """One drawing below the other, on one sheet."""
    marks: list[Mark] = []
    height = 0.0
    for drawing in drawings:
        marks += [mark.shift(0, height) for mark in drawing.marks]
        height += drawing.height
    width = max((drawing.width for drawing in drawings), default=1)
    return Drawing(width, max(height, 1), tuple(marks), "; ".join(d.name for d in drawings))
