"""The tokens along the two sides of a map."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, cos, radians, sin

from regard.attention import Label
from regard.looking.colours import FAINT
from regard.looking.drawing import Mark, Text
from regard.looking.tokens import clip, visible
from regard.text_width import text_width

LONGEST = 18  # cells of a token that are shown; the page shows the rest on hovering
CORNER = 11  # size of the axes' names
CLEAR = 5  # between a token and its cells


@dataclass(frozen=True)
class Axis:
    """Tokens at equal distances, `step` at a time when there are too many to be read."""

    texts: tuple[str, ...]
    pitch: float  # from one cell to the next
    size: float  # of the letters
    name: str  # what the tokens are: queries, keys, rows …
    rotation: int = 0
    vertical: bool = False  # down the side rather than across the top

    @property
    def step(self) -> int:
        return max(1, ceil(1.1 * self.size / self.pitch))

    @property
    def longest(self) -> float:
        return max(text_width(text, self.size) for text in self.texts[:: self.step])

    @property
    def depth(self) -> float:
        """Room the tokens need beside the cells, and in the corner the names of both axes."""
        if self.vertical:
            return max(self.longest, text_width("columns →", CORNER)) + 2 * CLEAR
        turn = radians(-self.rotation)
        slanted = self.longest * sin(turn) + self.size * (0.6 + 0.5 * cos(turn))
        return max(slanted, 2.6 * CORNER) + CLEAR

    @property
    def overhang(self) -> float:
        """How far slanted tokens reach beyond the last cell."""
        reach = cos(radians(self.rotation)) if self.rotation not in (0, -90) else 0
        ends = (
            (at + 0.5) * self.pitch + reach * text_width(text, self.size)
            for at, text in self.shown()
        )
        return max(0.0, max(ends) - len(self.texts) * self.pitch) if reach else 0.0

    def shown(self) -> Iterator[tuple[int, str]]:
        for at in range(0, len(self.texts), self.step):
            yield at, self.texts[at]

    def labels(self, x: float, y: float) -> list[Mark]:
        """The tokens of a map whose upper left corner is (x, y)."""
        return [self.label(x, y, (at + 0.5) * self.pitch, text) for at, text in self.shown()]

    def label(self, x: float, y: float, along: float, text: str) -> Text:
        if self.vertical:
            return Text(x - CLEAR, y + along, text, self.size, "end")
        if self.rotation:
            return Text(x + along, y - CLEAR, text, self.size, rotation=self.rotation)
        return Text(x + along, y - CLEAR - self.size / 2, text, self.size, "middle")

    def corner(self, x: float, y: float) -> Mark:
        """Its name, in the corner between both axes, with an arrow along it."""
        arrow, line = ("↓", 0.9) if self.vertical else ("→", 2.2)
        words = f"{self.name} {arrow}"
        return Text(x - 2 * CLEAR, y - line * CORNER, words, CORNER, "end", colour=FAINT)

    def note(self) -> Iterator[str]:
        if self.step > 1:
            yield f"{self.name}: one in {self.step} is named"


def shown(labels: tuple[Label, ...]) -> tuple[str, ...]:
    return tuple(clip(visible(label.text), LONGEST) for label in labels)


def down_the_side(labels: tuple[Label, ...], pitch: float, name: str) -> Axis:
    return Axis(shown(labels), pitch, min(12, max(9, pitch - 2)), name, vertical=True)


def across_the_top(labels: tuple[Label, ...], pitch: float, name: str) -> Axis:
    """Level when every token fits above its cell, slanted when it can be, upright when it must."""
    texts = shown(labels)
    size = min(12, max(9, pitch - 2))
    level = all(text_width(text, size) <= pitch for text in texts)
    slanted = pitch >= 1.35 * size
    return Axis(texts, pitch, size, name, 0 if level else -45 if slanted else -90)
