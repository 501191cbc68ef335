"""The tokens along the two sides of a map."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, cos, radians, sin

from regard.attention import Label
from regard.looking.colours import FAINT
from regard.looking.drawing import Mark, Text
from regard.looking.tokens import MAX_TOKEN_CELLS, clip, make_visible
from regard.text_width import text_width

AXIS_NAME_SIZE = 11  # of the letters of "queries ↓" and "keys →"
TOKEN_GAP = 5  # between a token and its cells


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
        """Every how many tokens one is named, so that they do not overlap."""
        return max(1, ceil(1.1 * self.size / self.pitch))

    @property
    def widest(self) -> float:
        """Width of the widest token that is named."""
        return max(text_width(text, self.size) for text in self.texts[:: self.step])

    @property
    def depth(self) -> float:
        """Room the tokens need beside the cells, and in the corner the names of both axes."""
        if self.vertical:
            return max(self.widest, text_width("columns →", AXIS_NAME_SIZE)) + 2 * TOKEN_GAP
        turn = radians(-self.rotation)
        slanted = self.widest * sin(turn) + self.size * (0.6 + 0.5 * cos(turn))
        return max(slanted, 2.6 * AXIS_NAME_SIZE) + TOKEN_GAP

    @property
    def overhang(self) -> float:
        """How far slanted tokens reach beyond the last cell."""
        reach = cos(radians(self.rotation)) if self.rotation not in (0, -90) else 0
        ends = (
            (at + 0.5) * self.pitch + reach * text_width(text, self.size)
            for at, text in self.ticks()
        )
        return max(0.0, max(ends) - len(self.texts) * self.pitch) if reach else 0.0

    def ticks(self) -> Iterator[tuple[int, str]]:
        """The tokens that are named, each with its index."""
        for at in range(0, len(self.texts), self.step):
            yield at, self.texts[at]

    def labels(self, x: float, y: float) -> list[Mark]:
        """The tokens of a map whose upper left corner is (x, y)."""
        return [self.label(x, y, (at + 0.5) * self.pitch, text) for at, text in self.ticks()]

    def label(self, x: float, y: float, along: float, text: str) -> Text:
        """One token, `along` pixels from the start of the axis."""
        if self.vertical:
            return Text(x - TOKEN_GAP, y + along, text, self.size, "end")
        if self.rotation:
            return Text(x + along, y - TOKEN_GAP, text, self.size, rotation=self.rotation)
        return Text(x + along, y - TOKEN_GAP - self.size / 2, text, self.size, "middle")

    def draw_name(self, x: float, y: float) -> Mark:
        """The name of the axis, in the corner between both axes, with an arrow along it."""
        arrow, line = ("↓", 0.9) if self.vertical else ("→", 2.2)
        words = f"{self.name} {arrow}"
        x, y = x - 2 * TOKEN_GAP, y - line * AXIS_NAME_SIZE
        return Text(x, y, words, AXIS_NAME_SIZE, "end", colour=FAINT)

    def notes(self) -> Iterator[str]:
        """Words for the legend, when some tokens are not named."""
        if self.step > 1:
            yield f"{self.name}: one in {self.step} is named"


def display_texts(labels: tuple[Label, ...]) -> tuple[str, ...]:
    """The tokens as an axis shows them: nothing invisible, long ones cut."""
    return tuple(clip(make_visible(label.text), MAX_TOKEN_CELLS) for label in labels)


def row_axis(labels: tuple[Label, ...], pitch: float, name: str) -> Axis:
    """The axis down the left side of a map."""
    return Axis(display_texts(labels), pitch, min(12, max(9, pitch - 2)), name, vertical=True)


def column_axis(labels: tuple[Label, ...], pitch: float, name: str) -> Axis:
    """The axis along the top of a map.

    Level when every token fits above its cell, slanted when it can be, upright when it must.
    """
    texts = display_texts(labels)
    size = min(12, max(9, pitch - 2))
    level = all(text_width(text, size) <= pitch for text in texts)
    slanted = pitch >= 1.35 * size
    return Axis(texts, pitch, size, name, 0 if level else -45 if slanted else -90)
