"""What stands around every map: its title above, the key to its colours below."""

from collections.abc import Iterable

import numpy as np

from regard.looking.colours import FAINT, Scale
from regard.looking.drawing import Cells, Drawing, Mark, Text
from regard.looking.panels import is_hatched
from regard.looking.tokens import clip, make_visible
from regard.looking.views import View, describe_scaling, describe_view
from regard.text_width import text_width

MARGIN = 18
HEAD_HEIGHT = 62  # from the top edge to the map
FOOT_HEIGHT = 46
NOTE_HEIGHT = 10  # more, when there is a second line
RAMP_SIZE = (132, 11)  # width and height of the colour scale


def format_weight(value: float) -> str:
    """A weight as short as can be: 0, .42, -.08, 1, 1.5, 37, 2e4."""
    size = abs(value)
    if size < 0.995:
        return f"{value:.2f}".replace("0.", ".") if value else "0"
    if size < 9.95 and value != round(value):
        return f"{value:.1f}"
    if size < 999.5:
        return f"{value:.0f}"
    digit, exponent = f"{value:.0e}".split("e")
    return f"{digit}e{int(exponent)}"


def frame(
    view: View, width: float, height: float, marks: Iterable[Mark], more: Iterable[str] = ()
) -> Drawing:
    """The drawing of a map whose marks lie within (width, height), HEAD below the top edge."""
    title = make_visible(view.look.path)
    notes = [*describe_scaling(view), *more]
    foot = draw_legend(view, height + 20, notes)
    texts = [mark for mark in foot if isinstance(mark, Text)]
    needed = [mark.x + text_width(mark.text, mark.size) for mark in texts]
    needed += [
        MARGIN + 1.1 * text_width(clip(title, 64), 16),
        MARGIN + text_width(describe_view(view), 12),
    ]
    head = [
        Text(MARGIN, 24, clip(title, 64), size=16, bold=True),
        Text(MARGIN, 45, describe_view(view), colour=FAINT),
    ]
    width = max(width, *needed) + MARGIN
    height += FOOT_HEIGHT + (NOTE_HEIGHT if notes else 0)
    return Drawing(width, height, (*head, *marks, *foot), f"{title}: {describe_view(view)}")


def draw_legend(view: View, y: float, notes: Iterable[str]) -> list[Mark]:
    """The colours from least to most, what hatching means, anything else worth a word."""
    if not view.values.size:
        return []
    scale = view.scale
    low_label, high_label = scale.end_labels
    low = Text(MARGIN, y, low_label, size=11)
    left = MARGIN + text_width(low.text, 11) + 5
    high = Text(left + RAMP_SIZE[0] + 6, y, high_label, size=11)
    x = high.x + text_width(high.text, 11) + 10
    words = Text(x, y, describe_scale(view), size=11, colour=FAINT)
    marks: list[Mark] = [low, draw_ramp(scale, left, y), high, words]
    if is_hatched(view):
        x = words.x + text_width(words.text, 11) + 18
        note = Text(x + 26, y, view.terms.hidden, size=11, colour=FAINT)
        marks += [draw_swatch(scale, x, y), note]
    line = " · ".join(notes)
    return [*marks, Text(MARGIN, y + 18, line, size=11, colour=FAINT)] if line else marks


def describe_scale(view: View) -> str:
    """What the scale of colours is of."""
    if len(view.look.heads) > 1:
        return f"one scale for all {view.terms.map}s"
    return view.terms.value


def draw_ramp(scale: Scale, x: float, y: float) -> Cells:
    """The scale of colours from least to most, its middle line at y."""
    width, height = RAMP_SIZE
    values = np.linspace(scale.low, scale.high, 44)[None]
    edges = np.linspace(x, x + width, 45)
    return Cells(edges, np.array([y - height / 2, y + height / 2]), values, values > np.inf, scale)


def draw_swatch(scale: Scale, x: float, y: float) -> Cells:
    """One hatched cell, to be explained beside it."""
    edges = np.array([x, x + 20]), np.array([y - RAMP_SIZE[1] / 2, y + RAMP_SIZE[1] / 2])
    return Cells(*edges, np.zeros((1, 1)), np.ones((1, 1), bool), scale)
