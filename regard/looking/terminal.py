"""The pen for terminals: shades of blue where there is colour, shades of grey blocks where not.

A token may be wide (日本), of no width (a joiner) or run leftward; columns stay in line because
every width is measured in terminal cells and leftward tokens are isolated from their neighbours.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from rich.cells import cell_len
from rich.color import Color
from rich.style import Style
from rich.text import Text

from regard.attention import Label, Look
from regard.looking import strips
from regard.looking.colours import Scale
from regard.looking.frame import number, shared
from regard.looking.panels import IMAGES, Panel, panels
from regard.looking.tokens import clip, direction, isolated, visible
from regard.looking.views import View, described, head_name, notes, part

SHADES = " ░▒▓█"
MASKED = " ·"
LONGEST = 18  # cells of a token
ROWS = 60  # queries shown; a longer map scrolls away before anyone reads it
LAST = 8  # cells kept free on the right, where the last key is named
NUMBERED = 12  # so many tokens a side, and every cell shows its number
GAP = 2  # between two maps side by side


def terminal(look: Look, width: int, colour: bool) -> Iterator[Text]:
    """The lines that show a look, none wider than `width`."""
    view, left_out = trimmed(look, width)
    yield Text(clip(visible(look.path), width), style="bold" if colour else "")
    yield Text(clip(described(view), width), style="dim" if colour else "")
    yield Text()
    if not view.queries or not view.keys:
        yield Text(clip("nothing to look at", width))
        return
    pen = Pen(view.scale, colour)
    yield from strip(view, pen, width) if strips.fits(view) else maps(view, pen, width)
    yield from legend(view, pen, width)
    yield from folded(left_out, width)


def trimmed(look: Look, width: int) -> tuple[View, list[str]]:
    """As many queries and keys as can be shown, and words for the rest."""
    queries, keys = min(ROWS, len(look.queries)), len(look.keys)
    image = look.grid is not None and queries * len(look.heads) <= IMAGES
    strip = look.kind == "pool" and queries == 1 and keys <= strips.MOST
    if not image and not strip:
        keys = min(keys, max(1, (width - side_width(look.queries, width) - LAST) // 2))
    columns = look.grid[1] if look.grid is not None and image else 0
    left_out = [
        f"{things} {shown:,} to {whole - 1:,}"
        for things, shown, whole in [
            ("queries", queries, len(look.queries)),
            ("keys", keys, len(look.keys)),
            ("columns of the image", width // 2, columns),
        ]
        if shown < whole
    ]
    words = [f"left out: {', '.join(left_out)}", "a saved .html shows all"] if left_out else []
    return part(look, queries, keys), words


def side_width(labels: Sequence[Label], width: int) -> int:
    """Cells for the longest token beside the rows, and one space."""
    longest = max((cell_len(visible(label.text)) for label in labels[:ROWS]), default=0)
    return min(longest, LONGEST, max(4, width // 4)) + 1


class Pen:
    """How one weight looks in two cells, or in five with its number."""

    def __init__(self, scale: Scale, colour: bool):
        self.scale = scale
        self.colour = colour

    def cell(self, value: float, hidden: bool) -> tuple[str, Style | str]:
        if hidden:
            return MASKED, "dim" if self.colour else ""
        if self.colour:
            return "  ", self.ground(value)
        return ("-" if value < 0 else self.shade(value)) + self.shade(value), ""

    def numbered(self, value: float, hidden: bool) -> tuple[str, Style | str]:
        if hidden:
            return "  ·  ", "dim" if self.colour else ""
        if self.colour:
            ink = Color.parse(self.scale.ink(value))
            return f"{clip(number(value), 5):^5}", self.ground(value) + Style.from_color(ink)
        return f"{self.shade(value)}{clip(number(value), 4):<4}", ""

    def shade(self, value: float) -> str:
        return SHADES[round(min(abs(value) / self.scale.high, 1) * (len(SHADES) - 1))]

    def ground(self, value: float) -> Style:
        return Style(bgcolor=Color.from_rgb(*self.scale.rgb(value)))


def maps(view: View, pen: Pen, width: int) -> Iterator[Text]:
    """As many maps side by side as fit, their queries on the left, their keys above the first."""
    shown = panels(view)
    image = bool(shown[0].place.key_step)
    side = 0 if image else side_width(view.queries, width)
    rows, columns = shown[0].values.shape
    numbers = fits_numbers(len(shown), rows, columns, width - side)
    pitch = 5 if numbers else 2
    columns = min(columns, (width - side) // pitch)
    across = max(1, (width - side + GAP) // (columns * pitch + GAP))
    if not image:
        yield from key_lines(view.keys, side, pitch, width)
    for first in range(0, len(shown), across):
        yield from band(shown[first : first + across], view, pen, side, columns, numbers)


def fits_numbers(maps: int, rows: int, columns: int, room: int) -> bool:
    return maps == 1 and max(rows, columns) <= NUMBERED and 5 * columns <= room


def band(
    shown: Sequence[Panel], view: View, pen: Pen, side: int, columns: int, numbers: bool
) -> Iterator[Text]:
    room = columns * (5 if numbers else 2)
    if any(panel.title for panel in shown):
        titles = [padded(clip(panel.title, room), room) for panel in shown]
        yield Text(" " * side + (" " * GAP).join(titles).rstrip())
    for row in range(shown[0].values.shape[0]):
        line = Text(beside(view.queries[row], side) if side else "")
        for at, panel in enumerate(shown):
            line.append(" " * GAP if at else "")
            for value, hidden in zip(panel.values[row, :columns], panel.hidden[row], strict=False):
                draw = pen.numbered if numbers else pen.cell
                line.append(*draw(float(value), bool(hidden)))
        yield line
    yield Text()


def beside(label: Label, side: int) -> str:
    """A token at the right end of its place, and a space."""
    token = clip(visible(label.text), side - 1)
    return " " * (side - 1 - cell_len(token)) + isolated(token) + " "


def padded(text: str, cells: int) -> str:
    return isolated(text) + " " * (cells - cell_len(text))


def key_lines(keys: Sequence[Label], side: int, pitch: int, width: int) -> Iterator[Text]:
    """The keys, each on a line from which a stem leads down to its column.

    Tokens written level can be read in any script; a stair of them keeps clear of every stem.
    """
    starts = [side + pitch * at + (pitch - 2) // 2 for at in range(len(keys))]
    tokens = [
        clip(visible(key.text), max(1, min(LONGEST, width - start)))
        for key, start in zip(keys, starts, strict=True)
    ]
    steps = stair(starts, tokens)
    for step in range(max(steps) + 1):
        line = ""
        for start, token, own in zip(starts, tokens, steps, strict=True):
            if own <= step:
                line += " " * (start - cell_len(line)) + (isolated(token) if own == step else "│")
        yield Text(line)


def stair(starts: Sequence[int], tokens: Sequence[str]) -> list[int]:
    """The line of each token: the first on which no earlier token would be crossed by its stem."""
    steps: list[int] = []
    for at, start in enumerate(starts):
        crossed = (
            steps[before]
            for before in range(at)
            if starts[before] + cell_len(tokens[before]) >= start
        )
        steps.append(max(crossed, default=-1) + 1)
    return steps


def strip(view: View, pen: Pen, width: int) -> Iterator[Text]:
    """One query over a text: a strip of shades above the words, which run as their script does."""
    words = [clip(visible(label.text), min(32, width - 1)) for label in view.keys]
    leftward = sum(direction(word) == "rtl" for word in words) > len(words) / 2
    for head, name in enumerate(view.look.heads):
        if name:
            yield Text(clip(head_name(name), width))
        for line in broken(words, width):
            yield from strip_lines(view, head, line[::-1] if leftward else line, words, pen)
        yield Text()


def broken(words: Sequence[str], width: int) -> Iterator[list[int]]:
    held: list[int] = []
    used = 0
    for at, word in enumerate(words):
        if held and used + cell_len(word) + 1 > width:
            yield held
            held, used = [], 0
        held.append(at)
        used += cell_len(word) + 1
    yield held


def strip_lines(
    view: View, head: int, keys: Sequence[int], words: Sequence[str], pen: Pen
) -> Iterator[Text]:
    shades, line = Text(), ""
    for key in keys:
        cells = max(1, cell_len(words[key]))
        mark, style = pen.cell(float(view.values[head, 0, key]), bool(view.hidden[head, 0, key]))
        shades.append((mark[::-1] * cells)[:cells], style)
        shades.append(" ")
        line += isolated(words[key]) + " "
    yield shades
    yield Text(line)


def legend(view: View, pen: Pen, width: int) -> Iterator[Text]:
    """What the shades mean, on one line if it holds them."""
    low, high = pen.scale.ends
    line = Text(f"{low} ")
    for value in np.linspace(pen.scale.low, pen.scale.high, 12 if pen.colour else len(SHADES)):
        line.append(*pen.cell(float(value), hidden=False))
    line.append(f" {high}")
    masked = [f"{MASKED.strip()} masked: may not look"] if view.hidden.any() else []
    told = [shared(view), *masked, *notes(view)]
    joined = "; ".join(told)
    if line.cell_len + 2 + cell_len(joined) <= width:
        yield line.append(f"  {joined}")
    else:
        line.truncate(width)
        yield line
        yield from folded(told, width)


def folded(notes: Sequence[str], width: int) -> Iterator[Text]:
    """The notes on as few lines as hold them."""
    line = ""
    for note in notes:
        joined = f"{line}; {note}" if line else note
        if line and cell_len(joined) > width:
            yield Text(line)
            joined = note
        line = clip(joined, width)
    if line:
        yield Text(line)
