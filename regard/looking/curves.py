"""Lines over one axis, in the same style as the maps: how a memory fades, how a gradient flows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TextIO

from regard.looking.chart import render_chart
from regard.looking.colours import CURVE_COLOURS, FAINT, RULE
from regard.looking.console import make_console, print_lines, width_and_colour
from regard.looking.drawing import Drawing, Line, Mark, Text
from regard.looking.figure import render_pdf, render_png
from regard.looking.files import check_ending, write_file
from regard.looking.page import render_plain_page
from regard.looking.scales import Range, fit_range
from regard.looking.svg import render_svg
from regard.looking.tokens import clip, make_visible
from regard.text_width import text_width

ENDINGS = (".html", ".svg", ".png", ".pdf")
WIDTH, HEIGHT = 520, 280  # of the field the curves are in
LEFT, TOP, BOTTOM, MARGIN = 66, 72, 56, 18
DASHES: tuple[tuple[float, ...], ...] = ((), (7, 3), (2, 2.5), (9, 3, 2, 3), (4, 4), (12, 3))
MAX_DOTTED_POINTS = 16  # a curve of more has no dot on each
NAME_SPACING = 15  # from one name to the next
SAMPLE_WIDTH = 30  # a piece of the curve, shown before its name


@dataclass(frozen=True)
class Curves:
    """Some series over the same x, each in its own colour and dashes, and named at its end.

    Without `x` the values stand at 0, 1, 2 … A value that is not finite leaves a gap, and so does
    one at or below zero when the scale is logarithmic.
    """

    series: Mapping[str, Sequence[float]]
    title: str
    x_label: str
    y_label: str
    log: bool = False
    x: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if not self.series:
            raise ValueError("series is empty: there is no curve to draw")
        for name, values in self.series.items():
            if self.x is not None and len(values) != len(self.x):
                raise ValueError(
                    f"series {name!r} has {len(values)} values, and x has {len(self.x)}"
                )
            if not any(self.is_drawable(value) for value in values):
                positive = " and positive" if self.log else ""
                raise ValueError(f"series {name!r} has no value that is finite{positive}")

    def is_drawable(self, value: float) -> bool:
        """Whether a value has a place on the scale; the others leave a gap."""
        return isfinite(value) and (value > 0 or not self.log)

    def points(self, name: str) -> list[tuple[float, float]]:
        """Where the curve goes, gaps included."""
        values = self.series[name]
        return list(zip(self.x if self.x is not None else range(len(values)), values, strict=True))

    @property
    def axes(self) -> tuple[Range, Range]:
        """The x and the y axis, wide enough for every curve."""
        drawable = [
            point
            for name in self.series
            for point in self.points(name)
            if self.is_drawable(point[1])
        ]
        x = fit_range([at for at, _ in drawable], tight=True)
        return x, fit_range([value for _, value in drawable], log=self.log)

    def print(
        self, file: TextIO | None = None, colour: bool | None = None, width: int | None = None
    ) -> None:
        """Show the curves as text, as wide as the terminal or as given."""
        console = make_console(file, colour, width)
        print_lines(console, render_chart(self, *width_and_colour(console)))

    def save(self, path: str | Path) -> None:
        """Write a file of the kind its ending names: .html, .svg, .png or .pdf."""
        path = Path(path)
        kind = check_ending(path, ENDINGS)
        drawing = self.draw()
        if kind in (".html", ".svg"):
            render = render_plain_page if kind == ".html" else render_svg
            write_file(path, render(drawing).encode())
        else:
            write_file(path, (render_png if kind == ".png" else render_pdf)([drawing]))

    def draw(self) -> Drawing:
        """The line chart, ready to be rendered."""
        x, y = self.axes
        marks = [*draw_headings(self), *draw_grid(x, y)]
        ends = []
        for at, name in enumerate(self.series):
            colour, dash = CURVE_COLOURS[at % len(CURVE_COLOURS)], DASHES[at % len(DASHES)]
            dots = len(self.series[name]) <= MAX_DOTTED_POINTS
            stretches = list(split_at_gaps(self, name, x, y))
            for stretch in stretches:
                marks += draw_stretch(stretch, colour, dash, dots)
            ends.append((stretches[-1][-1][1], name, colour, dash))
        marks += draw_names(ends)
        name_width = max(text_width(clip(make_visible(name), 30), 12) for name in self.series)
        width = LEFT + WIDTH + 10 + SAMPLE_WIDTH + name_width + MARGIN
        title_width = MARGIN * 2 + 1.1 * text_width(clip(make_visible(self.title), 70), 16)
        size = max(width, title_width), TOP + HEIGHT + BOTTOM
        return Drawing(*size, tuple(marks), f"{make_visible(self.title)}: {', '.join(self.series)}")

    def _repr_html_(self) -> str:
        return render_svg(self.draw())


def draw_curves(
    series: Mapping[str, Sequence[float]],
    title: str,
    x_label: str,
    y_label: str,
    log: bool = False,
    x: Sequence[float] | None = None,
) -> Drawing:
    """The line chart of some series: see `Curves`, which can also print and save it."""
    return Curves(series, title, x_label, y_label, log, x).draw()


def draw_headings(curves: Curves) -> list[Mark]:
    """The title and the names of both axes."""
    return [
        Text(MARGIN, 24, clip(make_visible(curves.title), 70), size=16, bold=True),
        Text(MARGIN, 50, clip(make_visible(curves.y_label), 70) + " ↑", size=11, colour=FAINT),
        Text(
            LEFT + WIDTH,
            TOP + HEIGHT + 38,
            clip(make_visible(curves.x_label), 70) + " →",
            11,
            "end",
            colour=FAINT,
        ),
    ]


def draw_grid(x: Range, y: Range) -> Iterator[Mark]:
    """The axes with their named values, and a line across for each of y."""
    low = TOP + HEIGHT
    for value, name in y.ticks():
        at = low - HEIGHT * y.fraction(value)
        yield Line(((LEFT, at), (LEFT + WIDTH, at)), RULE)
        yield Text(LEFT - 8, at, name, 11, "end")
    free = 0.0  # where the last name ended
    for value, name in x.ticks():
        at = LEFT + WIDTH * x.fraction(value)
        yield Line(((at, low), (at, low + 5)), FAINT)
        half = text_width(name, 11) / 2
        if at - half > free:
            yield Text(at, low + 16, name, 11, "middle")
            free = at + half + 4
    yield Line(((LEFT, low), (LEFT + WIDTH, low)), FAINT)


def split_at_gaps(
    curves: Curves, name: str, x: Range, y: Range
) -> Iterator[list[tuple[float, float]]]:
    """The stretches of a curve between its gaps, in the lengths of the drawing."""
    stretch: list[tuple[float, float]] = []
    for at, value in curves.points(name):
        if curves.is_drawable(value):
            stretch.append((LEFT + WIDTH * x.fraction(at), TOP + HEIGHT * (1 - y.fraction(value))))
        elif stretch:
            yield stretch
            stretch = []
    if stretch:
        yield stretch


def draw_stretch(
    stretch: Sequence[tuple[float, float]], colour: str, dash: tuple[float, ...], dots: bool
) -> Iterator[Mark]:
    """A line through the points of a stretch, and a dot on each if asked; one alone is a dot."""
    if len(stretch) > 1:
        yield Line(tuple(stretch), colour, 2, dash)
    for x, y in stretch if dots or len(stretch) == 1 else ():
        yield Line(((x - 3, y), (x + 3, y)), colour, 6)


def draw_names(ends: Sequence[tuple[float, str, str, tuple[float, ...]]]) -> Iterator[Mark]:
    """The name of each curve at its right end; names that would overlap move apart."""
    x, y = LEFT + WIDTH + 10, float(TOP - NAME_SPACING)
    bottom = TOP + HEIGHT
    for at, (end, name, colour, dash) in enumerate(sorted(ends), start=1):
        still_below = NAME_SPACING * (len(ends) - at)
        y = max(y + NAME_SPACING, min(end, bottom - still_below))
        yield Line(((x, y), (x + SAMPLE_WIDTH - 7, y)), colour, 2, dash)
        yield Text(x + SAMPLE_WIDTH, y, clip(make_visible(name), 30), colour=colour)
