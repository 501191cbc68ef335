"""The box of one node in a drawing: its texts, its size and its SVG."""

from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

from regard.graph.node import Node
from regard.graph.operation import Array, Leaf
from regard.graph.summary import summarise
from regard.text_width import text_width

DIGITS, MAX_NUMBERS = 3, 3
MAX_LETTERS = 36  # of a name or an operation
LARGE, SMALL = 14.0, 12.0  # sizes of letters
PADDING, LINE_HEIGHT, SIGN_WIDTH = 12.0, 19.0, 15.0

INK, FAINT = "#1f2937", "#667085"
VALUE, GRADIENT = "#1d5fa8", "#b3430e"
KINDS = {  # fill and border
    "data": ("#e9f1fa", "#a3bfdf"),
    "parameter": ("#fdf3d8", "#dcbd68"),
    "constant": ("#f0f0ed", "#c9c9c3"),
    "computed": ("#ffffff", "#c2c9d3"),
}


@dataclass(frozen=True)
class Box:
    """Name, operation, value and gradient of a node as they are written, and their SVG."""

    name: str
    operation: str
    kind: str  # one of KINDS
    value: str
    gradient: str | None

    @classmethod
    def of(cls, node: Node, name: str) -> "Box":
        return cls(
            name=_truncate(name),
            operation=_truncate(str(node.operation)),
            kind=node.operation.name if isinstance(node.operation, Leaf) else "computed",
            value=_format_value(node.value),
            gradient=None if node.gradient is None else _format_value(node.gradient),
        )

    @property
    def width(self) -> float:
        heading = 1.1 * text_width(self.name, LARGE) + 20 + text_width(self.operation, SMALL)
        numbers = (
            SIGN_WIDTH + text_width(line, SMALL) for line in (self.value, self.gradient or "")
        )
        return max(heading, *numbers) + 2 * PADDING

    @property
    def height(self) -> float:
        return LINE_HEIGHT * (2 if self.gradient is None else 3) + 12

    def svg(self, left: float, top: float) -> Iterator[str]:
        """The elements of the box, whose upper left corner is given."""
        fill, border = KINDS[self.kind]
        yield f'<g transform="translate({left:.1f} {top:.1f})" font-size="{SMALL:g}">'
        yield (
            f'<rect width="{self.width:.1f}" height="{self.height:.1f}" rx="8" '
            f'fill="{fill}" stroke="{border}"/>'
        )
        yield (
            f'<text x="{PADDING:g}" y="{LINE_HEIGHT + 3:g}" font-size="{LARGE:g}" '
            f'font-weight="600" fill="{INK}">{escape(self.name)}</text>'
        )
        yield (
            f'<text x="{self.width - PADDING:.1f}" y="{LINE_HEIGHT + 3:g}" text-anchor="end" '
            f'fill="{FAINT}">{escape(self.operation)}</text>'
        )
        yield _render_numbers("=", self.value, VALUE, 2 * LINE_HEIGHT + 2)
        if self.gradient is not None:
            yield _render_numbers("∂", self.gradient, GRADIENT, 3 * LINE_HEIGHT + 2)
        yield "</g>"


def _render_numbers(sign: str, numbers: str, colour: str, y: float) -> str:
    """A line of numbers behind a sign, which tells value from gradient where colour does not."""
    return (
        f'<text x="{PADDING:g}" y="{y:g}" fill="{colour}">{sign}'
        f'<tspan x="{PADDING + SIGN_WIDTH:g}">{escape(numbers)}</tspan></text>'
    )


def _truncate(text: str) -> str:
    return text if len(text) <= MAX_LETTERS else text[: MAX_LETTERS - 1] + "…"


def _format_value(value: Array) -> str:
    """Numbers with a minus as wide as their digits, which a hyphen is not."""
    return summarise(value, DIGITS, MAX_NUMBERS).replace("-", "−")
