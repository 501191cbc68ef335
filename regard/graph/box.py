"""The box of one node: what is written on it, how much room that takes, and its SVG."""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

from .node import Node
from .operation import Array, Leaf
from .summary import summary

DIGITS, MOST_NUMBERS = 3, 3
LONGEST = 36  # letters of a name or an operation
LARGE, SMALL = 14.0, 12.0  # sizes of letters
PADDING, LINE, SIGN = 12.0, 19.0, 15.0

INK, QUIET = "#1f2937", "#667085"
VALUE, GRADIENT = "#1d5fa8", "#b3430e"
KINDS = {  # fill and border
    "given": ("#e9f1fa", "#a3bfdf"),
    "parameter": ("#fdf3d8", "#dcbd68"),
    "constant": ("#f0f0ed", "#c9c9c3"),
    "computed": ("#ffffff", "#c2c9d3"),
}


@dataclass(frozen=True)
class Box:
    name: str
    operation: str
    kind: str  # one of KINDS
    value: str
    gradient: str | None

    @classmethod
    def of(cls, node: Node, name: str) -> "Box":
        return cls(
            name=_cut(name),
            operation=_cut(str(node.operation)),
            kind=node.operation.name if isinstance(node.operation, Leaf) else "computed",
            value=_typeset(node.value),
            gradient=None if node.gradient is None else _typeset(node.gradient),
        )

    @property
    def width(self) -> float:
        heading = 1.1 * measure(self.name, LARGE) + 20 + measure(self.operation, SMALL)
        numbers = (SIGN + measure(line, SMALL) for line in (self.value, self.gradient or ""))
        return max(heading, *numbers) + 2 * PADDING

    @property
    def height(self) -> float:
        return LINE * (2 if self.gradient is None else 3) + 12

    def svg(self, left: float, top: float) -> Iterator[str]:
        fill, border = KINDS[self.kind]
        yield f'<g transform="translate({left:.1f} {top:.1f})" font-size="{SMALL:g}">'
        yield (
            f'<rect width="{self.width:.1f}" height="{self.height:.1f}" rx="8" '
            f'fill="{fill}" stroke="{border}"/>'
        )
        yield (
            f'<text x="{PADDING:g}" y="{LINE + 3:g}" font-size="{LARGE:g}" font-weight="600" '
            f'fill="{INK}">{escape(self.name)}</text>'
        )
        yield (
            f'<text x="{self.width - PADDING:.1f}" y="{LINE + 3:g}" text-anchor="end" '
            f'fill="{QUIET}">{escape(self.operation)}</text>'
        )
        yield _numbers("=", self.value, VALUE, 2 * LINE + 2)
        if self.gradient is not None:
            yield _numbers("∂", self.gradient, GRADIENT, 3 * LINE + 2)
        yield "</g>"


def _numbers(sign: str, numbers: str, colour: str, y: float) -> str:
    """A line of numbers behind a sign, which tells value from gradient where colour does not."""
    return (
        f'<text x="{PADDING:g}" y="{y:g}" fill="{colour}">{sign}'
        f'<tspan x="{PADDING + SIGN:g}">{escape(numbers)}</tspan></text>'
    )


def measure(text: str, size: float) -> float:
    """About how wide the text comes out: no font is at hand, so widths are those of a wide one."""
    return size * sum(_em(letter) for letter in text)


def _em(letter: str) -> float:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0.0
    if letter == "…" or unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    if letter in "ijlftr.,:;|!'[]() ":
        return 0.38
    return 0.86 if letter in "mwMW−=∂" else 0.7 if letter.isupper() else 0.64


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _typeset(value: Array) -> str:
    """Numbers with a minus as wide as their digits, which a hyphen is not."""
    return summary(value, DIGITS, MOST_NUMBERS).replace("-", "−")
