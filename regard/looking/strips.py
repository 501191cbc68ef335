"""One query over a text: a strip of colour above the words, as the text runs.

A sentence pooled into one vector has no second axis worth drawing, and words in a row can be read.
"""

from collections.abc import Iterator

import numpy as np

from regard.looking.drawing import Cells, Drawing, Mark, Place, Text
from regard.looking.frame import HEAD, MARGIN, framed, number
from regard.looking.tokens import clip, direction, visible
from regard.looking.views import View, head_name
from regard.text_width import text_width

WIDTH = 860
STRIP, WORDS, BETWEEN = 24, 18, 12  # heights: of the colours, of the words below, to the next line
LONGEST = 32
MOST = 2_000  # words; above, a strip is no longer read and a map says it better


def fits(view: View) -> bool:
    one = view.look.kind == "pool" and len(view.queries) == 1 and view.whole
    return one and 0 < len(view.keys) <= MOST and view.look.grid is None


def draw(view: View) -> Drawing:
    words = [clip(visible(label.text), LONGEST) for label in view.keys]
    lines = list(broken([max(30.0, text_width(word, 12) + 10) for word in words]))
    to_left = sum(direction(word) == "rtl" for word in words) > len(words) / 2
    width = max(sum(widths) for _, widths in lines)
    right = MARGIN + width if to_left else None
    marks: list[Mark] = []
    y = float(HEAD)
    for head, name in enumerate(view.look.heads):
        if name:
            marks.append(Text(MARGIN, y + 8, clip(head_name(name), 40), bold=True))
            y += 22
        for first, widths in lines:
            marks += line(view, head, first, widths, words, y, right)
            y += STRIP + WORDS + BETWEEN
    return framed(view, MARGIN + width, y, marks)


def broken(widths: list[float]) -> Iterator[tuple[int, list[float]]]:
    """The widths line by line, each line with the index of its first word."""
    first, held = 0, list[float]()
    for at, width in enumerate(widths):
        if held and sum(held) + width > WIDTH:
            yield first, held
            first, held = at, []
        held.append(width)
    yield first, held


def line(
    view: View,
    head: int,
    first: int,
    widths: list[float],
    words: list[str],
    y: float,
    right: float | None,
) -> Iterator[Mark]:
    """One line of cells with its words below, leftward from `right` if so the text runs."""
    onward = 1 if right is None else -1
    keys = np.arange(first, first + len(widths))[::onward]
    ends = np.cumsum([0.0, *(widths[key - first] for key in keys)])
    edges = ends + (MARGIN if right is None else right - ends[-1])
    values, hidden = view.values[head][:, keys], view.hidden[head][:, keys]
    place = Place(head, key=int(keys[0]), query_step=0, key_across=onward)
    yield Cells(edges, np.array([y, y + STRIP]), values, hidden, view.scale, 1, place)
    middles = (edges[1:] + edges[:-1]) / 2
    for middle, key, value, masked in zip(middles, keys, values[0], hidden[0], strict=True):
        yield Text(float(middle), y + STRIP + WORDS / 2 + 1, words[key], 12, "middle")
        if not masked:
            ink = view.scale.ink(float(value))
            yield Text(float(middle), y + STRIP / 2, number(float(value)), 11, "middle", colour=ink)
