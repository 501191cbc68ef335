"""One query over a text: a strip of colour above the words, as the text runs.

A sentence pooled into one vector has no second axis worth drawing, and words in a row can be read.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from regard.looking.drawing import Cells, Drawing, Mark, Place, Text
from regard.looking.frame import HEAD_HEIGHT, MARGIN, format_weight, frame
from regard.looking.tokens import clip, make_visible, mostly_right_to_left
from regard.looking.views import View, head_name
from regard.text_width import text_width

LINE_WIDTH = 860
STRIP_HEIGHT, WORDS_HEIGHT, LINE_GAP = 24, 18, 12  # the colours, the words below, the next line
MAX_WORD_CELLS = 32  # cells of a word that are shown
MAX_STRIP_WORDS = 2_000  # more are no longer read, and a map says it better


def is_strip(view: View) -> bool:
    """Whether a view is drawn as a strip: one query that pools a text of bearable length."""
    one = view.look.kind == "pool" and len(view.queries) == 1 and not view.in_blocks
    return one and 0 < len(view.keys) <= MAX_STRIP_WORDS and view.look.grid is None


def draw_strip(view: View) -> Drawing:
    """The drawing of a view: for each head the text in lines, a strip of colour above each."""
    words = [clip(make_visible(label.text), MAX_WORD_CELLS) for label in view.keys]
    widths = [max(30.0, text_width(word, 12) + 10) for word in words]
    lines = list(break_lines(widths, LINE_WIDTH))
    width = max(sum(widths[key] for key in line) for line in lines)
    right = MARGIN + width if mostly_right_to_left(words) else None
    marks: list[Mark] = []
    y = float(HEAD_HEIGHT)
    for head, name in enumerate(view.look.heads):
        if name:
            marks.append(Text(MARGIN, y + 8, clip(head_name(name), 40), bold=True))
            y += 22
        for line in lines:
            marks += draw_line(view, head, line, widths, words, y, right)
            y += STRIP_HEIGHT + WORDS_HEIGHT + LINE_GAP
    return frame(view, MARGIN + width, y, marks)


def break_lines(widths: Sequence[float], line_width: float) -> Iterator[range]:
    """The words of each line, by their indices: as many as are not wider than it together."""
    first, used = 0, 0.0
    for at, width in enumerate(widths):
        if at > first and used + width > line_width:
            yield range(first, at)
            first, used = at, 0.0
        used += width
    yield range(first, len(widths))


def draw_line(
    view: View,
    head: int,
    line: range,
    widths: list[float],
    words: list[str],
    y: float,
    right: float | None,
) -> Iterator[Mark]:
    """One line of cells with its words below, leftward from `right` if so the text runs."""
    onward = 1 if right is None else -1
    keys = line[::onward]
    ends = np.cumsum([0.0, *(widths[key] for key in keys)])
    edges = ends + (MARGIN if right is None else right - ends[-1])
    values, hidden = view.values[head][:, keys], view.hidden[head][:, keys]
    place = Place(head, key=keys[0], query_step=0, key_across=onward)
    yield Cells(edges, np.array([y, y + STRIP_HEIGHT]), values, hidden, view.scale, 1, place)
    middles = ((edges[1:] + edges[:-1]) / 2).tolist()
    weight_y, word_y = y + STRIP_HEIGHT / 2, y + STRIP_HEIGHT + WORDS_HEIGHT / 2 + 1
    for x, key, value, masked in zip(middles, keys, values[0].tolist(), hidden[0], strict=True):
        yield Text(x, word_y, words[key], 12, "middle")
        if not masked:
            colour = view.scale.text_colour(value)
            yield Text(x, weight_y, format_weight(value), 11, "middle", colour=colour)
