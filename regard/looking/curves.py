"""Lines over one axis, in the same style as the maps: how a memory fades, how a gradient flows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TextIO

from regard.looking.chart import chart
from regard.looking.colours import CURVES, FAINT, RULE
from regard.looking.console import console_for, room, show
from regard.looking.drawing import Drawing, Line, Mark, Text
from regard.looking.figure import pdf, png
from regard.looking.files import check_ending, write_file
from regard.looking.page import plain_page
from regard.looking.scales import Range, range_over
from regard.looking.svg import svg
from regard.looking.tokens import clip, visible
from regard.text_width import text_width

ENDINGS = (".html", ".svg", ".png", ".pdf")
WIDTH, HEIGHT = 520, 280  # of the field the curves are in
LEFT, TOP, BOTTOM, MARGIN = 66, 72, 56, 18
DASHES: tuple[tuple[float, ...], ...] = ((), (7, 3), (2, 2.5), (9, 3, 2, 3), (4, 4), (12, 3))
DOTTED = 16  # so few points, and each gets a dot
BETWEEN = 15  # from one name to the next
SAMPLE = 30  # a piece of the curve, shown before its name


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
            if not any(self.shown(value) for value in values):
                positive = " and positive" if self.log else ""
                raise ValueError(f"series {name!r} has no value that is finite{positive}")

    def shown(self, value: float) -> bool:
        return isfinite(value) and (value > 0 or not self.log)

    def points(self, name: str) -> list[tuple[float, float]]:
        """Where the curve goes, gaps included."""
        values = self.series[name]
        return list(zip(self.x if self.x is not None else range(len(values)), values, strict=True))

    @property
    def axes(self) -> tuple[Range, Range]:
        """The x and the y axis, wide enough for every curve."""
        seen = [
            point for name in self.series for point in self.points(name) if self.shown(point[1])
        ]
        x = range_over([at for at, _ in seen], tight=True)
        return x, range_over([value for _, value in seen], log=self.log)

    def print(
        self, file: TextIO | None = None, colour: bool | None = None, width: int | None = None
    ) -> None:
        """Show the curves as text, as wide as the terminal or as given."""
        console = console_for(file, colour, width)
        show(console, chart(self, *room(console)))

    def save(self, path: str | Path) -> None:
        """Write a file of the kind its ending names: .html, .svg, .png or .pdf."""
        path = Path(path)
        kind = check_ending(path, ENDINGS)
        drawing = self.draw()
        if kind in (".html", ".svg"):
            write_file(path, (plain_page if kind == ".html" else svg)(drawing).encode())
        else:
            write_file(path, (png if kind == ".png" else pdf)([drawing]))

    def draw(self) -> Drawing:
        x, y = self.axes
        marks = [*headings(self), *grid(x, y)]
        ends = []
        for at, name in enumerate(self.series):
            colour, dash = CURVES[at % len(CURVES)], DASHES[at % len(DASHES)]
            runs = list(unbroken(self, name, x, y))
            for run in runs:
                marks += traced(run, colour, dash, dots=len(self.series[name]) <= DOTTED)
            ends.append((runs[-1][-1][1], name, colour, dash))
        marks += named(ends)
        names = max(text_width(clip(visible(name), 30), 12) for name in self.series)
        width = LEFT + WIDTH + 10 + SAMPLE + names + MARGIN
        title = MARGIN * 2 + 1.1 * text_width(clip(visible(self.title), 70), 16)
        size = max(width, title), TOP + HEIGHT + BOTTOM
        return Drawing(*size, tuple(marks), f"{visible(self.title)}: {', '.join(self.series)}")

    def _repr_html_(self) -> str:
        return svg(self.draw())


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


def headings(curves: Curves) -> list[Mark]:
    return [
        Text(MARGIN, 24, clip(visible(curves.title), 70), size=16, bold=True),
        Text(MARGIN, 50, clip(visible(curves.y_label), 70) + " ↑", size=11, colour=FAINT),
        Text(
            LEFT + WIDTH,
            TOP + HEIGHT + 38,
            clip(visible(curves.x_label), 70) + " →",
            11,
            "end",
            colour=FAINT,
        ),
    ]


def grid(x: Range, y: Range) -> Iterator[Mark]:
    low = TOP + HEIGHT
    for value, name in y.ticks():
        at = low - HEIGHT * y.share(value)
        yield Line(((LEFT, at), (LEFT + WIDTH, at)), RULE)
        yield Text(LEFT - 8, at, name, 11, "end")
    free = 0.0  # where the last name ended
    for value, name in x.ticks():
        at = LEFT + WIDTH * x.share(value)
        yield Line(((at, low), (at, low + 5)), FAINT)
        half = text_width(name, 11) / 2
        if at - half > free:
            yield Text(at, low + 16, name, 11, "middle")
            free = at + half + 4
    yield Line(((LEFT, low), (LEFT + WIDTH, low)), FAINT)


def unbroken(curves: Curves, name: str, x: Range, y: Range) -> Iterator[list[tuple[float, float]]]:
    """The stretches of a curve between its gaps, in the lengths of the drawing."""
    run: list[tuple[float, float]] = []
    for at, value in curves.points(name):
        if curves.shown(value):
            run.append((LEFT + WIDTH * x.share(at), TOP + HEIGHT * (1 - y.share(value))))
        elif run:
            yield run
            run = []
    if run:
        yield run


def traced(
    run: Sequence[tuple[float, float]], colour: str, dash: tuple[float, ...], dots: bool
) -> Iterator[Mark]:
    if len(run) > 1:
        yield Line(tuple(run), colour, 2, dash)
    for x, y in run if dots or len(run) == 1 else ():
        yield Line(((x - 3, y), (x + 3, y)), colour, 6)


def named(ends: Sequence[tuple[float, str, str, tuple[float, ...]]]) -> Iterator[Mark]:
    """The name of each curve at its right end; names that would overlap move apart."""
    x, y = LEFT + WIDTH + 10, float(TOP - BETWEEN)
    most = TOP + HEIGHT
    for left, (end, name, colour, dash) in zip(range(len(ends), 0, -1), sorted(ends), strict=True):
        y = max(y + BETWEEN, min(end, most - BETWEEN * (left - 1)))
        yield Line(((x, y), (x + SAMPLE - 7, y)), colour, 2, dash)
        yield Text(x + SAMPLE, y, clip(visible(name), 30), colour=colour)
