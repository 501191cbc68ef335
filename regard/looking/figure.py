"""Render drawings as PNG and PDF, with matplotlib.

matplotlib is slow to import, so it waits until somebody saves such a file. Only `Figure` objects
are used, never pyplot, whose figures are shared by the whole process.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.looking.colours import HATCH_BACKGROUND, HATCH_LINE, LEVELS, PAPER, Floats
from regard.looking.drawing import Cells, Drawing, Line, Picture, Text, stack
from regard.looking.fonts import (
    DEFAULT_FONT,
    choose_fonts,
    missing_characters,
    replace_control_pictures,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PIXELS_PER_INCH, POINTS_PER_PIXEL = 96, 0.75  # as CSS has them; a point is 1/72 of an inch
PNG_SCALE = 2  # pixels of a PNG for each pixel of the drawing, both ways
MAX_PNG_PIXELS = 60_000_000  # in one PNG, unless even one for one needs more
MAX_PNG_SIDE = 60_000  # pixels: beyond 2¹⁶ matplotlib gives up


def render_png(drawings: Sequence[Drawing]) -> bytes:
    """A PNG of all drawings on one sheet."""
    sheet = stack(drawings)
    fits = PNG_SCALE**2 * sheet.width * sheet.height <= MAX_PNG_PIXELS
    scale = min(PNG_SCALE if fits else 1, MAX_PNG_SIDE / max(sheet.width, sheet.height))
    file = BytesIO()
    figure = make_figure(sheet)
    with ignore_missing_glyphs():
        figure.savefig(file, format="png", dpi=PIXELS_PER_INCH * scale, metadata={"Software": None})
    return file.getvalue()


def render_pdf(drawings: Sequence[Drawing]) -> bytes:
    """A PDF with a page for each drawing, without a date: the same looks give the same file."""
    from matplotlib.backends.backend_pdf import PdfPages

    file = BytesIO()
    with PdfPages(file, metadata={"CreationDate": None}) as pages:
        for drawing in drawings:
            figure = make_figure(drawing)
            with ignore_missing_glyphs():
                pages.savefig(figure)
    return file.getvalue()


@contextmanager
def ignore_missing_glyphs() -> Iterator[None]:
    """Silence matplotlib's warning for each glyph it lacks: `choose_fonts` gives one for all."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def make_figure(drawing: Drawing) -> "Figure":
    """The drawing as a matplotlib figure, mark by mark."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    sheet = Figure(
        (drawing.width / PIXELS_PER_INCH, drawing.height / PIXELS_PER_INCH), facecolor=PAPER
    )
    FigureCanvasAgg(sheet)
    axes = sheet.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, drawing.width), ylim=(drawing.height, 0))
    axes.set_axis_off()
    texts = [mark.text for mark in drawing.marks if isinstance(mark, Text)]
    fonts = choose_fonts(replace_control_pictures("".join(texts)))
    for order, mark in enumerate(drawing.marks):
        if isinstance(mark, Text):
            draw_text(axes, mark, fonts, order)
        elif isinstance(mark, Line):
            draw_line(axes, mark, order)
        elif isinstance(mark, Picture):
            draw_pixels(axes, mark.pixels, (mark.x, mark.y, mark.width, mark.height), order)
        elif drawing.as_images and mark.place:
            draw_image(axes, mark, order)
        else:
            draw_rectangles(axes, mark, order)
    return sheet


def draw_text(axes: "Axes", mark: Text, fonts: list[str], order: int) -> None:
    """A line of text, by the fonts that are needed for it."""
    words = replace_control_pictures(mark.text)
    axes.text(
        *mark.baseline,
        words,
        fontsize=mark.size * POINTS_PER_PIXEL,
        ha={"start": "left", "middle": "center", "end": "right"}[mark.anchor],
        va="baseline",
        rotation=-mark.rotation,
        rotation_mode="anchor",
        color=mark.colour,
        weight="bold" if mark.bold else "normal",
        family=fonts if missing_characters(words, DEFAULT_FONT) else DEFAULT_FONT,
        parse_math=False,  # a token may well be «$x$»
        zorder=order,
    )


def draw_line(axes: "Axes", mark: Line, order: int) -> None:
    """A line through its points, dashed or not."""
    x, y = zip(*mark.points, strict=True)
    dash: Any = (0, [length / mark.width for length in mark.dash]) if mark.dash else "solid"
    width = mark.width * POINTS_PER_PIXEL
    axes.plot(x, y, color=mark.colour, linewidth=width, linestyle=dash, zorder=order)


def draw_rectangles(axes: "Axes", cells: Cells, order: int) -> None:
    """The cells as rectangles, sharp at any size."""
    from matplotlib.collections import PolyCollection

    shapes = rectangle_corners(cells.rectangles)
    colours = cells.scale.palette[cells.levels[~cells.hidden]] / 255
    # An edge of width 0 is a hairline in PDF and would close the gaps: there must be no edge.
    style: dict[str, Any] = {"facecolors": colours, "edgecolors": "none", "antialiaseds": False}
    axes.add_collection(PolyCollection(list(shapes[~cells.hidden]), zorder=order, **style))
    draw_hatching(axes, shapes[cells.hidden], order)


def rectangle_corners(rectangles: Floats) -> Floats:  # (…, corner, x y)
    """The way around each rectangle, back to its first corner."""
    x, y, width, height = np.moveaxis(rectangles, -1, 0)
    around = [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]
    return np.stack([np.stack(point, axis=-1) for point in around], axis=-2)


def draw_image(axes: "Axes", cells: Cells, order: int) -> None:
    """The cells as an image, one pixel each; a masked one is a hole that shows the hatching."""
    if cells.hidden.any():
        draw_hatching(axes, rectangle_corners(np.array([cells.box])), order)
    opaque = np.full((LEVELS, 1), 255, np.uint8)
    colours = np.concatenate([cells.scale.palette, opaque], axis=1)[cells.levels]
    colours[cells.hidden] = 0
    draw_pixels(axes, colours, cells.box, order)


def draw_pixels(
    axes: "Axes", pixels: NDArray[np.uint8], box: tuple[float, float, float, float], order: int
) -> None:
    """Pixels (row, column, colour) over x, y, width, height; the sheet stays as large as it is."""
    x, y, width, height = box
    extent = (x, x + width, y + height, y)
    limits = axes.get_xlim(), axes.get_ylim()
    axes.imshow(pixels, extent=extent, interpolation="none", aspect="auto", zorder=order)
    axes.set(xlim=limits[0], ylim=limits[1])


def draw_hatching(axes: "Axes", shapes: Floats, order: int) -> None:
    """Hatch many rectangles as one path, so that the lines of hatching run on from cell to cell."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    steps = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * len(shapes)
    path = Path(shapes.reshape(-1, 2), np.array(steps, np.uint8))
    patch = PathPatch(
        path, facecolor=HATCH_BACKGROUND, edgecolor=HATCH_LINE, linewidth=0, zorder=order
    )
    patch.set_hatch("/" * 8)
    patch.set_hatch_linewidth(0.6)
    axes.add_artist(patch)  # unlike add_patch it does not measure every corner, which takes seconds
