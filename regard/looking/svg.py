"""Render a drawing as SVG, for any browser or drawing program, without fonts or scripts."""

import base64
from collections.abc import Iterator
from html import escape
from io import BytesIO

import numpy as np
from PIL import Image

from regard.looking.colours import HATCH_BACKGROUND, HATCH_LINE, INK, LEVELS
from regard.looking.drawing import Cells, Drawing, Line, Mark, Picture, Text

FONTS = (
    "system-ui, 'Noto Sans', 'Noto Naskh Arabic', 'Noto Sans Arabic', 'Noto Sans Hebrew', "
    "'Noto Sans CJK JP', 'Noto Sans CJK SC', 'Noto Sans Devanagari', 'DejaVu Sans', sans-serif"
)


def render_svg(drawing: Drawing, *, prefix: str = "", paper: str | None = "#ffffff") -> str:
    """The drawing as an SVG element.

    `prefix` keeps its ids apart from those of other drawings on the same page, and `paper=None`
    lets the page shine through.
    """
    return "\n".join(render_lines(drawing, prefix, paper)) + "\n"


def render_lines(drawing: Drawing, prefix: str, paper: str | None) -> Iterator[str]:
    """The lines of the SVG element."""
    width, height = format_length(drawing.width), format_length(drawing.height)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="{escape(FONTS)}" fill="{INK}" role="img" '
        f'aria-label="{escape(drawing.name)}">'
    )
    if any(isinstance(mark, Cells) and mark.hidden.any() for mark in drawing.marks):
        yield render_hatch_pattern(prefix)
    if paper:
        yield f'<rect width="{width}" height="{height}" fill="{paper}"/>'
    maps = 0
    for mark in drawing.marks:
        name = f' class="map" id="{prefix}map-{maps}"' if is_map(mark) else ""
        maps += is_map(mark)
        yield from render_mark(mark, prefix, name, drawing.as_images)
    yield "</svg>"


def is_map(mark: Mark) -> bool:
    """Whether a mark shows weights."""
    return isinstance(mark, Cells) and mark.place is not None


def render_hatch_pattern(prefix: str) -> str:
    """The definition of the hatching that masked cells are filled with."""
    return (
        f'<defs><pattern id="{prefix}hatch" width="5" height="5" patternUnits="userSpaceOnUse">'
        f'<rect width="5" height="5" fill="{HATCH_BACKGROUND}"/>'
        f'<path d="M-1 1L1 -1M0 5L5 0M4 6L6 4" stroke="{HATCH_LINE}" stroke-width="0.9"/>'
        "</pattern></defs>"
    )


def render_mark(mark: Mark, prefix: str, name: str, as_images: bool) -> Iterator[str]:
    """The elements of one mark."""
    if isinstance(mark, Text):
        yield render_text(mark)
    elif isinstance(mark, Line):
        yield render_polyline(mark)
    elif isinstance(mark, Picture):
        yield render_picture(mark)
    else:
        yield f'<g{name} shape-rendering="crispEdges">'
        render = render_image if name and as_images else render_rectangles
        yield from render(mark, prefix)
        yield "</g>"


def render_text(mark: Text) -> str:
    """A <text>, anchored and turned."""
    x, y, turn = map(format_length, (*mark.baseline, mark.rotation))
    place = f'x="{x}" y="{y}"'
    if mark.rotation:
        place = f'transform="translate({x} {y}) rotate({turn})"'
    # In SVG `start` is where reading starts, so for a text that runs leftward it is the right end.
    leftward = mark.direction == "rtl"
    anchor = (
        {"start": "end", "end": "start"}.get(mark.anchor, "middle") if leftward else mark.anchor
    )
    style = f' text-anchor="{anchor}"' if anchor != "start" else ""
    style += ' direction="rtl"' if leftward else ""
    style += f' fill="{mark.colour}"' if mark.colour != INK else ""
    style += ' font-weight="600"' if mark.bold else ""
    if mark.width is not None:
        style += f' textLength="{format_length(mark.width)}"'
    size = format_length(mark.size)
    words = escape(mark.text, quote=False)
    return f'<text {place} font-size="{size}" unicode-bidi="isolate"{style}>{words}</text>'


def render_polyline(mark: Line) -> str:
    """A <polyline>."""
    points = " ".join(f"{format_length(x)},{format_length(y)}" for x, y in mark.points)
    dash = f' stroke-dasharray="{" ".join(map(format_length, mark.dash))}"' if mark.dash else ""
    return (
        f'<polyline points="{points}" fill="none" stroke="{mark.colour}" '
        f'stroke-width="{format_length(mark.width)}" stroke-linejoin="round"{dash}/>'
    )


def render_picture(mark: Picture) -> str:
    """An <image> of its pixels."""
    x, y, width, height = map(format_length, (mark.x, mark.y, mark.width, mark.height))
    file = BytesIO()
    Image.fromarray(mark.pixels).save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    return (
        f'<image x="{x}" y="{y}" width="{width}" height="{height}" preserveAspectRatio="none" '
        f'href="data:image/png;base64,{data}"/>'
    )


def render_rectangles(cells: Cells, prefix: str) -> Iterator[str]:
    """A <rect> for each cell."""
    palette = ["#" + bytes(colour).hex() for colour in cells.scale.palette]
    for row, column in np.ndindex(cells.values.shape):
        x, y, width, height = map(format_length, cells.rectangles[row, column])
        fill = palette[cells.levels[row, column]]
        if cells.hidden[row, column]:
            fill = f"url(#{prefix}hatch)"
        yield f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}"/>'


def render_image(cells: Cells, prefix: str) -> Iterator[str]:
    """An <image>, one pixel a cell; a masked one is a hole that shows the hatching."""
    x, y, width, height = map(format_length, cells.box)
    place = f'x="{x}" y="{y}" width="{width}" height="{height}"'
    if cells.hidden.any():
        yield f'<rect {place} fill="url(#{prefix}hatch)"/>'
    data = base64.b64encode(encode_png(cells)).decode()
    yield (
        f'<image {place} preserveAspectRatio="none" image-rendering="pixelated" '
        f'href="data:image/png;base64,{data}"/>'
    )


def encode_png(cells: Cells) -> bytes:
    """The cells as a PNG with a palette, its last colour transparent."""
    picture = Image.fromarray(np.where(cells.hidden, np.uint8(LEVELS), cells.levels))
    picture.putpalette([*cells.scale.palette.flatten().tolist(), 0, 0, 0])
    file = BytesIO()
    picture.save(file, "PNG", transparency=LEVELS)
    return file.getvalue()


def format_length(number: float) -> str:
    """A length with two digits after the point: a hundredth of a pixel is nothing to see."""
    return f"{number:.2f}".rstrip("0").rstrip(".")
