"""A graph as SVG, written by hand: boxes from top to bottom, joined by curves.

Everything is said by attributes: no style sheet and no id can leak into a page that holds several
drawings. Arrowheads are plain triangles for the same reason, since a marker needs an id.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from xml.sax.saxutils import escape, quoteattr

from regard.graph.box import FAINT, GRADIENT, KINDS, SMALL, VALUE, Box
from regard.graph.layout import Spot, arrange, fit_positions
from regard.graph.node import Node
from regard.text_width import text_width

MAX_NODES = 1000  # more boxes than anybody can read
MARGIN = 28.0
LEGEND_HEIGHT = 44.0
ARROW = 7.0
ARROW_GAP = 24.0
ARROW_INSET = 22.0  # from the side of a box to the first arrow
PAPER, LINES = "#fbfbf9", "#8b95a3"
FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


def draw(nodes: Sequence[Node], names: Mapping[Node, str], title: str) -> str:
    """Draw the nodes, each after the nodes it reads, as an SVG document."""
    if len(nodes) > MAX_NODES:
        raise ValueError(
            f"a drawing holds at most {MAX_NODES} nodes, this graph has {len(nodes)}: "
            "text() lists them all"
        )
    boxes = [Box.of(node, names[node]) for node in nodes]
    place = {node: i for i, node in enumerate(nodes)}
    reads = [[place[read] for read in node.inputs] for node in nodes]
    layout = arrange(reads, [(box.width, box.height) for box in boxes])
    legend = list(_draw_legend_entries(boxes))
    legend_width = sum(width for _, width in legend)
    width = max(layout.width, legend_width) + 2 * MARGIN
    height = layout.height + LEGEND_HEIGHT + 2 * MARGIN
    boxes_with_spots = zip(boxes, layout.spots[: len(boxes)], strict=True)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label={quoteattr(title)} '
            f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'font-family="{FONTS}">',
            f"<title>{escape(title)}</title>",
            f'<rect width="100%" height="100%" rx="12" fill="{PAPER}"/>',
            f'<g transform="translate({(width - layout.width) / 2:.1f} {MARGIN})">',
            f'<path d="{" ".join(_draw_curves(layout.spots))}" fill="none" stroke="{LINES}" '
            'stroke-width="1.4"/>',
            f'<path d="{" ".join(_draw_arrowheads(layout.spots))}" fill="{LINES}"/>',
            *chain.from_iterable(
                box.svg(spot.x - spot.width / 2, spot.top) for box, spot in boxes_with_spots
            ),
            "</g>",
            f'<g transform="translate({(width - legend_width) / 2:.1f} {height - MARGIN})" '
            f'font-size="{SMALL:g}" fill="{FAINT}">',
            *_place_in_row(legend),
            "</g>",
            "</svg>",
        ]
    )


def _draw_curves(spots: Sequence[Spot]) -> Iterator[str]:
    """A path for each edge, upright at both ends and straight down through a trunk's passage."""
    for spot in spots:
        if not spot.is_box:
            yield f"M{spot.x:.1f} {spot.top:.1f}V{spot.bottom:.1f}"
        for above, x in _arrivals(spot):
            end = spot.top - (ARROW if spot.is_box else 0)
            middle = (above.bottom + end) / 2
            yield (
                f"M{above.x:.1f} {above.bottom:.1f}"
                f"C{above.x:.1f} {middle:.1f} {x:.1f} {middle:.1f} {x:.1f} {end:.1f}"
            )


def _draw_arrowheads(spots: Sequence[Spot]) -> Iterator[str]:
    """A triangle where each edge arrives at a box."""
    for spot in spots:
        for _, x in _arrivals(spot) if spot.is_box else ():
            half = ARROW / 2
            yield f"M{x:.1f} {spot.top:.1f}l{-half} {-ARROW}h{ARROW}z"


def _arrivals(spot: Spot) -> Iterator[tuple[Spot, float]]:
    """Each edge into a spot with the x it arrives at: right below its start, where that is free."""
    above = sorted(spot.above, key=lambda other: other.x)
    if not above:
        return
    last = len(above) - 1
    reach = spot.width / 2 - ARROW_INSET if spot.is_box else 0.0
    gap = min(ARROW_GAP, 2 * reach / max(last, 1))
    left, right = spot.x - reach, spot.x + reach
    targets = [
        min(max(other.x, left + i * gap), right - (last - i) * gap) for i, other in enumerate(above)
    ]
    yield from zip(above, fit_positions(targets, [gap] * last, [1.0] * len(above)), strict=True)


def _draw_legend_entries(boxes: Sequence[Box]) -> Iterator[tuple[str, float]]:
    """The entries that the drawing needs, each with the room it takes."""
    present = {box.kind for box in boxes}
    for kind, (fill, border) in KINDS.items():
        if kind in present:
            swatch = (
                f'<rect y="-10" width="16" height="12" rx="3" fill="{fill}" stroke="{border}"/>'
            )
            yield f'{swatch}<text x="22">{kind}</text>', 22 + text_width(kind, SMALL) + 20
    yield f'<text fill="{VALUE}">= value</text>', text_width("= value", SMALL) + 20
    if any(box.gradient is not None for box in boxes):
        words = "∂ gradient of the output"
        yield f'<text fill="{GRADIENT}">{words}</text>', text_width(words, SMALL)


def _place_in_row(entries: Sequence[tuple[str, float]]) -> Iterator[str]:
    """The entries of a legend side by side."""
    x = 0.0
    for entry, width in entries:
        yield f'<g transform="translate({x:.1f} 0)">{entry}</g>'
        x += width
