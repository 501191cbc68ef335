"""Render a look as text: shades of blue where there is colour, shades of grey blocks where not.

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
from regard.looking.documents import (
    SENTENCES_LEGEND,
    WORDS_LEGEND,
    DocumentView,
    break_sentence,
    is_document,
    make_document_view,
)
from regard.looking.frame import describe_scale, format_weight
from regard.looking.panels import (
    MAX_IMAGE_PANELS,
    MAX_NUMBERED_TOKENS,
    Panel,
    is_hatched,
    make_panels,
)
from regard.looking.tokens import MAX_TOKEN_CELLS, clip, isolate, make_visible, mostly_right_to_left
from regard.looking.views import (
    View,
    describe_scaling,
    describe_view,
    head_name,
    make_part_view,
    side_names,
)

SHADES = " ░▒▓█"
MASKED = " ·"
MAX_ROWS = 60  # queries shown; a longer map scrolls away before anyone reads it
LAST_KEY_CELLS = 8  # cells kept free on the right, where the last key is named
GAP = 2  # between two maps side by side


def render_terminal(look: Look, width: int, colour: bool) -> Iterator[Text]:
    """The lines that show a look, none wider than `width`."""
    if is_document(look):
        yield from render_document(make_document_view(look), width, colour)
        return
    view, left_out = crop(look, width)
    yield Text(clip(make_visible(look.path), width), style="bold" if colour else "")
    yield Text(clip(describe_view(view), width), style="dim" if colour else "")
    yield Text()
    if not view.queries or not view.keys:
        yield Text(clip("nothing to look at", width))
        return
    pen = Pen(view.scale, colour)
    render = render_strip if strips.is_strip(view) else render_maps
    yield from render(view, pen, width)
    yield from render_legend(view, pen, width)
    yield from fold_notes(left_out, width)


def crop(look: Look, width: int) -> tuple[View, list[str]]:
    """A view of as many queries and keys as fit, and words for what is left out."""
    queries, keys = min(MAX_ROWS, len(look.queries)), len(look.keys)
    image = look.grid is not None and queries * len(look.heads) <= MAX_IMAGE_PANELS
    strip = look.kind == "pool" and queries == 1 and keys <= strips.MAX_STRIP_WORDS
    if not image and not strip:
        keys = min(keys, max(1, (width - measure_side(look.queries, width) - LAST_KEY_CELLS) // 2))
    columns = look.grid[1] if look.grid is not None and image else 0
    left_out = [
        f"{things} {shown:,} to {whole - 1:,}"
        for things, shown, whole in [
            (side_names(look)[0], queries, len(look.queries)),
            (side_names(look)[1], keys, len(look.keys)),
            ("columns of the image", width // 2, columns),
        ]
        if shown < whole
    ]
    words = [f"left out: {', '.join(left_out)}", "a saved .html shows all"] if left_out else []
    return make_part_view(look, queries, keys), words


def measure_side(labels: Sequence[Label], width: int) -> int:
    """Cells for the longest token beside the rows, and one space."""
    longest = max((cell_len(make_visible(label.text)) for label in labels[:MAX_ROWS]), default=0)
    return min(longest, MAX_TOKEN_CELLS, max(4, width // 4)) + 1


class Pen:
    """How one weight looks in two cells, or in five with its number."""

    def __init__(self, scale: Scale, colour: bool):
        self.scale = scale
        self.colour = colour

    def cell(self, value: float, hidden: bool) -> tuple[str, Style | str]:
        """Two cells of text and their style."""
        if hidden:
            return MASKED, "dim" if self.colour else ""
        if self.colour:
            return "  ", self.background(value)
        return ("-" if value < 0 else self.shade(value)) + self.shade(value), ""

    def numbered_cell(self, value: float, hidden: bool) -> tuple[str, Style | str]:
        """Five cells of text and their style: the weight with its number."""
        if hidden:
            return "  ·  ", "dim" if self.colour else ""
        if self.colour:
            ink = Style.from_color(Color.parse(self.scale.text_colour(value)))
            return f"{clip(format_weight(value), 5):^5}", self.background(value) + ink
        return f"{self.shade(value)}{clip(format_weight(value), 4):<4}", ""

    def shade(self, value: float) -> str:
        """One of ` ░▒▓█`, by the size of a weight."""
        return SHADES[round(min(abs(value) / self.scale.high, 1) * (len(SHADES) - 1))]

    def background(self, value: float) -> Style:
        """The colour of a weight, behind its cell."""
        return Style(bgcolor=Color.from_rgb(*self.scale.rgb(value)))


def render_maps(view: View, pen: Pen, width: int) -> Iterator[Text]:
    """As many maps side by side as fit, their queries on the left, their keys above the first."""
    panels = make_panels(view)
    image = bool(panels[0].place.key_step)
    side = 0 if image else measure_side(view.queries, width)
    rows, columns = panels[0].values.shape
    numbers = fits_numbers(len(panels), rows, columns, width - side)
    pitch = 5 if numbers else 2
    columns = min(columns, (width - side) // pitch)
    across = max(1, (width - side + GAP) // (columns * pitch + GAP))
    if not image:
        yield from render_keys(view.keys, side, pitch, width)
    for first in range(0, len(panels), across):
        beside = panels[first : first + across]
        yield from render_map_row(beside, view, pen, side, columns, numbers)


def fits_numbers(maps: int, rows: int, columns: int, width: int) -> bool:
    """Whether there is one map, with few enough tokens for a number on each of its cells."""
    return maps == 1 and max(rows, columns) <= MAX_NUMBERED_TOKENS and 5 * columns <= width


def render_map_row(
    panels: Sequence[Panel], view: View, pen: Pen, side: int, columns: int, numbers: bool
) -> Iterator[Text]:
    """Some maps side by side, row by row, with the queries on their left."""
    map_width = columns * (5 if numbers else 2)
    if any(panel.title for panel in panels):
        titles = [pad_right(clip(panel.title, map_width), map_width) for panel in panels]
        yield Text(" " * side + (" " * GAP).join(titles).rstrip())
    for row in range(max(len(panel.values) for panel in panels)):
        line = Text(align_right(view.queries[row], side) if side else "")
        for at, panel in enumerate(panels):
            line.append(" " * GAP if at else "")
            if row >= len(panel.values):  # a map of an episode with fewer rows
                line.append(" " * map_width)
                continue
            for value, hidden in zip(panel.values[row, :columns], panel.hidden[row], strict=False):
                draw = pen.numbered_cell if numbers else pen.cell
                line.append(*draw(float(value), bool(hidden)))
        yield line
    yield Text()


def align_right(label: Label, side: int) -> str:
    """A token at the right end of its place, and a space."""
    token = clip(make_visible(label.text), side - 1)
    return " " * (side - 1 - cell_len(token)) + isolate(token) + " "


def pad_right(text: str, cells: int) -> str:
    """The text, followed by spaces up to `cells`."""
    return isolate(text) + " " * (cells - cell_len(text))


def render_keys(keys: Sequence[Label], side: int, pitch: int, width: int) -> Iterator[Text]:
    """The keys, each on a line from which a stem leads down to its column.

    Tokens written level can be read in any script; a stair of them keeps clear of every stem.
    """
    starts = [side + pitch * at + (pitch - 2) // 2 for at in range(len(keys))]
    tokens = [
        clip(make_visible(key.text), max(1, min(MAX_TOKEN_CELLS, width - start)))
        for key, start in zip(keys, starts, strict=True)
    ]
    steps = stagger(starts, tokens)
    for step in range(max(steps) + 1):
        line = ""
        for start, token, its_step in zip(starts, tokens, steps, strict=True):
            if its_step <= step:
                sign = isolate(token) if its_step == step else "│"
                line += " " * (start - cell_len(line)) + sign
        yield Text(line)


def stagger(starts: Sequence[int], tokens: Sequence[str]) -> list[int]:
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


def render_strip(view: View, pen: Pen, width: int) -> Iterator[Text]:
    """One query over a text: a strip of shades above the words, which run as their script does."""
    words = [clip(make_visible(label.text), min(32, width - 1)) for label in view.keys]
    leftward = mostly_right_to_left(words)
    widths = [cell_len(word) + 1 for word in words]
    for head, name in enumerate(view.look.heads):
        if name:
            yield Text(clip(head_name(name), width))
        for line in strips.break_lines(widths, width):
            yield from render_strip_line(view, head, line[::-1] if leftward else line, words, pen)
        yield Text()


def render_strip_line(
    view: View, head: int, keys: Sequence[int], words: Sequence[str], pen: Pen
) -> Iterator[Text]:
    """One line of a strip: the shades, and below them the words."""
    shades, line = Text(), ""
    for key in keys:
        cells = max(1, cell_len(words[key]))
        mark, style = pen.cell(float(view.values[head, 0, key]), bool(view.hidden[head, 0, key]))
        shades.append((mark[::-1] * cells)[:cells], style)
        shades.append(" ")
        line += isolate(words[key]) + " "
    yield shades
    yield Text(line)


def render_document(view: DocumentView, width: int, colour: bool) -> Iterator[Text]:
    """A document, each sentence on lines of its own behind its weight."""
    yield Text(clip(make_visible(view.look.path), width), style="bold" if colour else "")
    yield Text(clip(view.caption, width), style="dim" if colour else "")
    yield Text()
    words_pen, sentences_pen = Pen(view.scale, colour), Pen(view.sentence_scale, colour)
    for sentence, words in enumerate(view.sentences):
        value = view.weight_of_sentence(sentence)
        weight = Text().append(*sentences_pen.numbered_cell(value, hidden=False))
        for line in render_sentence(view, words, words_pen, width - weight.cell_len - 1):
            yield weight.append(" ").append(line)
            weight = Text(" " * 5)
    yield Text()
    for pen, name in ((sentences_pen, SENTENCES_LEGEND), (words_pen, WORDS_LEGEND)):
        line = render_ramp(pen).append(f"  {name}")
        line.truncate(width)
        yield line


def render_sentence(view: DocumentView, words: range, pen: Pen, width: int) -> Iterator[Text]:
    """The words of a sentence on their shades; without colour, the shades stand above them."""
    shown = [clip(make_visible(view.keys[word].text), max(2, width - 1)) for word in words]
    blanks = [view.blanks[word] for word in words]
    widths = [cell_len(word) + blank for word, blank in zip(shown, blanks, strict=True)]
    for line in break_sentence(view, words, widths, width):
        above, below = Text(), Text()
        for word in line:
            at = word - words.start
            value, blank = float(view.values[0, 0, word]), " " * (blanks[at] and word > line[0])
            style: Style | str = ""
            if pen.colour:
                ink = Style.from_color(Color.parse(pen.scale.text_colour(value)))
                style = pen.background(value) + ink
            above.append(blank + pen.shade(value) * cell_len(shown[at]))
            below.append(blank).append(isolate(shown[at]), style)
        if not pen.colour:
            yield above
        yield below


def render_ramp(pen: Pen) -> Text:
    """The shades from least to most, with the numbers at their ends."""
    low, high = pen.scale.end_labels
    line = Text(f"{low} ")
    for value in np.linspace(pen.scale.low, pen.scale.high, 12 if pen.colour else len(SHADES)):
        line.append(*pen.cell(float(value), hidden=False))
    return line.append(f" {high}")


def render_legend(view: View, pen: Pen, width: int) -> Iterator[Text]:
    """What the shades mean, on one line if it holds them."""
    line = render_ramp(pen)
    masked = [f"{MASKED.strip()} {view.terms.hidden}"] if is_hatched(view) else []
    notes = [describe_scale(view), *masked, *describe_scaling(view)]
    joined = "; ".join(notes)
    if line.cell_len + 2 + cell_len(joined) <= width:
        yield line.append(f"  {joined}")
    else:
        line.truncate(width)
        yield line
        yield from fold_notes(notes, width)


def fold_notes(notes: Sequence[str], width: int) -> Iterator[Text]:
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
