"""The pen that writes SVG: for any browser or drawing program, with no font or script in it."""

import base64
from collections.abc import Iterator
from html import escape
from io import BytesIO

import numpy as np
from PIL import Image

from regard.looking.colours import HATCH_GROUND, HATCH_LINE, INK, LEVELS
from regard.looking.drawing import Cells, Drawing, Line, Mark, Text

FONTS = (
    "system-ui, 'Noto Sans', 'Noto Naskh Arabic', 'Noto Sans Arabic', 'Noto Sans Hebrew', "
    "'Noto Sans CJK JP', 'Noto Sans CJK SC', 'Noto Sans Devanagari', 'DejaVu Sans', sans-serif"
)


def svg(drawing: Drawing, *, prefix: str = "", paper: str | None = "#ffffff") -> str:
    """The drawing as an SVG element.

    `prefix` keeps its ids apart from those of other drawings on the same page, and `paper=None`
    lets the page shine through.
    """
    return "\n".join(lines(drawing, prefix, paper)) + "\n"


def lines(drawing: Drawing, prefix: str, paper: str | None) -> Iterator[str]:
    width, height = short(drawing.width), short(drawing.height)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="{escape(FONTS)}" fill="{INK}" role="img" '
        f'aria-label="{escape(drawing.name)}">'
    )
    if any(isinstance(mark, Cells) and mark.hidden.any() for mark in drawing.marks):
        yield hatching(prefix)
    if paper:
        yield f'<rect width="{width}" height="{height}" fill="{paper}"/>'
    shown = 0
    for mark in drawing.marks:
        name = f' class="map" id="{prefix}map-{shown}"' if is_map(mark) else ""
        shown += is_map(mark)
        yield from written(mark, prefix, name, drawing.as_images)
    yield "</svg>"


def is_map(mark: Mark) -> bool:
    return isinstance(mark, Cells) and mark.place is not None


def hatching(prefix: str) -> str:
    return (
        f'<defs><pattern id="{prefix}hatch" width="5" height="5" patternUnits="userSpaceOnUse">'
        f'<rect width="5" height="5" fill="{HATCH_GROUND}"/>'
        f'<path d="M-1 1L1 -1M0 5L5 0M4 6L6 4" stroke="{HATCH_LINE}" stroke-width="0.9"/>'
        "</pattern></defs>"
    )


def written(mark: Mark, prefix: str, name: str, as_images: bool) -> Iterator[str]:
    if isinstance(mark, Text):
        yield text(mark)
    elif isinstance(mark, Line):
        yield line(mark)
    else:
        yield f'<g{name} shape-rendering="crispEdges">'
        yield from image(mark, prefix) if name and as_images else rectangles(mark, prefix)
        yield "</g>"


def text(mark: Text) -> str:
    x, y = mark.baseline
    place = f'x="{short(x)}" y="{short(y)}"'
    if mark.rotation:
        at = f"translate({short(x)} {short(y)}) rotate({short(mark.rotation)})"
        place = f'transform="{at}"'
    # In SVG `start` is where reading starts, so for a text that runs leftward it is the right end.
    leftward = mark.direction == "rtl"
    anchor = (
        {"start": "end", "end": "start"}.get(mark.anchor, "middle") if leftward else mark.anchor
    )
    looks = f' text-anchor="{anchor}"' if anchor != "start" else ""
    looks += ' direction="rtl"' if leftward else ""
    looks += f' fill="{mark.colour}"' if mark.colour != INK else ""
    looks += ' font-weight="600"' if mark.bold else ""
    size = short(mark.size)
    words = escape(mark.text, quote=False)
    return f'<text {place} font-size="{size}" unicode-bidi="isolate"{looks}>{words}</text>'


def line(mark: Line) -> str:
    points = " ".join(f"{short(x)},{short(y)}" for x, y in mark.points)
    dash = f' stroke-dasharray="{" ".join(map(short, mark.dash))}"' if mark.dash else ""
    return (
        f'<polyline points="{points}" fill="none" stroke="{mark.colour}" '
        f'stroke-width="{short(mark.width)}" stroke-linejoin="round"{dash}/>'
    )


def rectangles(cells: Cells, prefix: str) -> Iterator[str]:
    palette = ["#" + bytes(colour).hex() for colour in cells.scale.palette]
    for row, column in np.ndindex(cells.values.shape):
        x, y, width, height = map(short, cells.rectangles[row, column])
        fill = palette[cells.levels[row, column]]
        if cells.hidden[row, column]:
            fill = f"url(#{prefix}hatch)"
        yield f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}"/>'


def image(cells: Cells, prefix: str) -> Iterator[str]:
    """One pixel a cell; a masked cell is a hole, through which the hatching behind is seen."""
    x, y, width, height = map(short, cells.box)
    place = f'x="{x}" y="{y}" width="{width}" height="{height}"'
    if cells.hidden.any():
        yield f'<rect {place} fill="url(#{prefix}hatch)"/>'
    data = base64.b64encode(pixels(cells)).decode()
    yield (
        f'<image {place} preserveAspectRatio="none" image-rendering="pixelated" '
        f'href="data:image/png;base64,{data}"/>'
    )


def pixels(cells: Cells) -> bytes:
    """The cells as a PNG with a palette, its last colour transparent."""
    picture = Image.fromarray(np.where(cells.hidden, np.uint8(LEVELS), cells.levels))
    picture.putpalette([*cells.scale.palette.flatten().tolist(), 0, 0, 0])
    file = BytesIO()
    picture.save(file, "PNG", transparency=LEVELS)
    return file.getvalue()


def short(number: float) -> str:
    """At most two digits after the point: a hundredth of a pixel is nothing to see."""
    return f"{number:.2f}".rstrip("0").rstrip(".")
