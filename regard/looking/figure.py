"""The pen that draws PNG and PDF, with matplotlib.

matplotlib is slow to import, so it waits until somebody saves such a file. Only `Figure` objects
are used, never pyplot, whose figures are shared by the whole process.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.looking.colours import HATCH_GROUND, HATCH_LINE, LEVELS, PAPER, Floats
from regard.looking.drawing import Cells, Drawing, Line, Text, stacked
from regard.looking.fonts import OURS, carets, families, lacking

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INCH, POINT = 96, 0.75  # a CSS pixel is 1/96 of an inch, a point 1/72
SHARPNESS = 2  # pixels of a PNG for each pixel of the drawing, both ways
PIXELS = 60_000_000  # in one PNG, unless even one for one needs more
LONGEST = 60_000  # pixels along one side: beyond 2¹⁶ matplotlib gives up


def png(drawings: Sequence[Drawing]) -> bytes:
    """All drawings on one sheet."""
    sheet = stacked(drawings)
    sharp = SHARPNESS**2 * sheet.width * sheet.height <= PIXELS
    sharpness = min(SHARPNESS if sharp else 1, LONGEST / max(sheet.width, sheet.height))
    file = BytesIO()
    drawn = figure(sheet)
    with quiet():
        drawn.savefig(file, format="png", dpi=INCH * sharpness, metadata={"Software": None})
    return file.getvalue()


def pdf(drawings: Sequence[Drawing]) -> bytes:
    """Each drawing on a page of its own, without a date: the same looks give the same file."""
    from matplotlib.backends.backend_pdf import PdfPages

    file = BytesIO()
    with PdfPages(file, metadata={"CreationDate": None}) as pages:
        for drawing in drawings:
            drawn = figure(drawing)
            with quiet():
                pages.savefig(drawn)
    return file.getvalue()


@contextmanager
def quiet() -> Iterator[None]:
    """Without matplotlib's line for every glyph it lacks: `families` has said it in one."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def figure(drawing: Drawing) -> "Figure":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    sheet = Figure((drawing.width / INCH, drawing.height / INCH), facecolor=PAPER)
    FigureCanvasAgg(sheet)
    axes = sheet.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, drawing.width), ylim=(drawing.height, 0))
    axes.set_axis_off()
    texts = [mark.text for mark in drawing.marks if isinstance(mark, Text)]
    chosen = families(carets("".join(texts)))
    for order, mark in enumerate(drawing.marks):
        if isinstance(mark, Text):
            write(axes, mark, chosen, order)
        elif isinstance(mark, Line):
            trace(axes, mark, order)
        elif drawing.as_images and mark.place:
            paint(axes, mark, order)
        else:
            fill(axes, mark, order)
    return sheet


def write(axes: "Axes", mark: Text, chosen: list[str], order: int) -> None:
    words = carets(mark.text)
    axes.text(
        *mark.baseline,
        words,
        fontsize=mark.size * POINT,
        ha={"start": "left", "middle": "center", "end": "right"}[mark.anchor],
        va="baseline",
        rotation=-mark.rotation,
        rotation_mode="anchor",
        color=mark.colour,
        weight="bold" if mark.bold else "normal",
        family=chosen if lacking(words, OURS) else OURS,
        parse_math=False,  # a token may well be «$x$»
        zorder=order,
    )


def trace(axes: "Axes", mark: Line, order: int) -> None:
    x, y = zip(*mark.points, strict=True)
    dash: Any = (0, [length / mark.width for length in mark.dash]) if mark.dash else "solid"
    width = mark.width * POINT
    axes.plot(x, y, color=mark.colour, linewidth=width, linestyle=dash, zorder=order)


def fill(axes: "Axes", cells: Cells, order: int) -> None:
    """Every cell a rectangle, sharp at any size."""
    from matplotlib.collections import PolyCollection

    shapes = corners(cells.rectangles)
    colours = cells.scale.palette[cells.levels[~cells.hidden]] / 255
    # An edge of width 0 is a hairline in PDF and would close the gaps: there must be no edge.
    look: dict[str, Any] = {"facecolors": colours, "edgecolors": "none", "antialiaseds": False}
    axes.add_collection(PolyCollection(list(shapes[~cells.hidden]), zorder=order, **look))
    hatch(axes, shapes[cells.hidden], order)


def corners(rectangles: Floats) -> Floats:  # (…, corner, x y)
    x, y, width, height = np.moveaxis(rectangles, -1, 0)
    around = [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]
    return np.stack([np.stack(point, axis=-1) for point in around], axis=-2)


def paint(axes: "Axes", cells: Cells, order: int) -> None:
    """One pixel a cell; a masked cell is a hole, through which the hatching behind is seen."""
    x, y, width, height = cells.box
    if cells.hidden.any():
        hatch(axes, corners(np.array([cells.box])), order)
    opaque = np.full((LEVELS, 1), 255, np.uint8)
    colours = np.concatenate([cells.scale.palette, opaque], axis=1)[cells.levels]
    colours[cells.hidden] = 0
    extent = (x, x + width, y + height, y)
    limits = axes.get_xlim(), axes.get_ylim()
    axes.imshow(colours, extent=extent, interpolation="none", aspect="auto", zorder=order)
    axes.set(xlim=limits[0], ylim=limits[1])


def hatch(axes: "Axes", shapes: Floats, order: int) -> None:
    """Many rectangles as one path, so that the lines of hatching run on from cell to cell."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    steps = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * len(shapes)
    path = Path(shapes.reshape(-1, 2), np.array(steps, np.uint8))
    patch = PathPatch(path, facecolor=HATCH_GROUND, edgecolor=HATCH_LINE, linewidth=0, zorder=order)
    patch.set_hatch("/" * 8)
    patch.set_hatch_linewidth(0.6)
    axes.add_artist(patch)  # unlike add_patch it does not measure every corner, which takes seconds
