import io
import math
import re
from itertools import pairwise

import pytest
from rich.cells import cell_len

from regard.looking import Curves, draw_curves
from regard.looking.curves import HEIGHT, LEFT, TOP, WIDTH
from regard.looking.drawing import Line, Text
from regard.looking.scales import fit_range


def printed(curves, width=72, colour=False):
    file = io.StringIO()
    curves.print(file, colour=colour, width=width)
    return file.getvalue().splitlines()


def lines(drawing, colour):
    return [mark for mark in drawing.marks if isinstance(mark, Line) and mark.colour == colour]


def test_points_stand_where_their_numbers_say():
    drawing = draw_curves({"loss": [0.0, 4.0, 2.0]}, "Loss", "step", "loss")
    curve = lines(drawing, "#1f5fb4")[0]
    assert curve.points == (
        (LEFT, TOP + HEIGHT),
        (LEFT + WIDTH / 2, TOP),
        (LEFT + WIDTH, TOP + HEIGHT / 2),
    )


def test_on_a_logarithmic_scale_equal_factors_are_equal_steps():
    drawing = draw_curves({"gradient": [1e-4, 1e-2, 1.0]}, "Gradient", "step", "norm", log=True)
    heights = [y for _, y in lines(drawing, "#1f5fb4")[0].points]
    assert heights[0] - heights[1] == pytest.approx(heights[1] - heights[2])


def test_x_may_be_given():
    drawing = draw_curves({"right": [1.0, 0.5]}, "Accuracy", "length", "share", x=[4, 128])
    texts = [mark.text for mark in drawing.marks if isinstance(mark, Text)]
    assert "4" in texts
    assert "128" in texts


def test_a_value_that_is_no_number_leaves_a_gap():
    values = [1.0, 2.0, math.nan, 3.0, math.inf, 5.0]
    drawing = draw_curves({"loss": values + [1.0] * 20}, "Loss", "step", "loss")
    runs = [line for line in lines(drawing, "#1f5fb4") if len(line.points) > 2 or line.width == 2]
    assert [len(run.points) for run in runs][:3] == [2, 21, 2]


def test_zero_leaves_a_gap_on_a_logarithmic_scale_only():
    values = {"g": [1.0, 0.0, *[0.1] * 20]}
    gapless, gapped = (draw_curves(values, "G", "t", "g", log=log) for log in (False, True))
    assert max(len(line.points) for line in lines(gapless, "#1f5fb4")) == 22
    assert max(len(line.points) for line in lines(gapped, "#1f5fb4")) == 20


def test_every_curve_is_named_at_its_end_without_overlap():
    names = [f"curve {at}" for at in range(6)]
    drawing = draw_curves({name: [0.0, 1.0] for name in names}, "Six", "x", "y")
    heights = sorted(m.y for m in drawing.marks if isinstance(m, Text) and m.text in names)
    assert len(heights) == 6
    assert min(b - a for a, b in pairwise(heights)) >= 14


def test_curves_differ_in_dashes_as_well_as_colour():
    drawing = draw_curves({"a": [0, 1], "b": [1, 0], "c": [1, 1]}, "Three", "x", "y")
    drawn = [m for m in drawing.marks if isinstance(m, Line) and m.width == 2]
    assert len({mark.dash for mark in drawn}) == len({mark.colour for mark in drawn}) == 3


@pytest.mark.parametrize(
    ("values", "log", "named"),
    [
        ([0, 7.3], False, ["0", "2", "4", "6", "8"]),
        ([0.1, 0.93], False, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        ([0.95, 1.0], False, ["0.95", "0.96", "0.97", "0.98", "0.99", "1"]),
        ([1e-4, 30], True, ["10⁻⁴", "10⁻³", "0.01", "0.1", "1", "10", "100"]),
        ([5, 5], False, ["4.4", "4.6", "4.8", "5", "5.2", "5.4", "5.6"]),
    ],
)
def test_round_numbers_are_named_along_an_axis(values, log, named):
    assert [name for _, name in fit_range(values, log=log).ticks()] == named


@pytest.mark.parametrize("ending", ["html", "svg", "png", "pdf"])
def test_curves_are_saved_by_their_ending(tmp_path, ending):
    curves = Curves({"<b>&": [1.0, 2.0], "سلام": [2.0, 1.0]}, "</script>", "x", "y")
    curves.save(tmp_path / f"curves.{ending}")
    assert (tmp_path / f"curves.{ending}").stat().st_size > 500


def test_an_unknown_ending_is_answered_with_those_known(tmp_path):
    curves = Curves({"a": [1.0]}, "A", "x", "y")
    with pytest.raises(ValueError, match=r"must end in one of \.html, \.svg, \.png, \.pdf$"):
        curves.save(tmp_path / "curves.json")


@pytest.mark.parametrize("width", [20, 37, 80])
@pytest.mark.parametrize("colour", [False, True])
def test_no_line_is_wider_than_the_terminal(width, colour):
    curves = Curves(
        {"a long name of a curve": [1.0, 9.0], "سلام": [3.0, 2.0], "日本": [1, 1]}, "T", "x", "y"
    )
    for line in printed(curves, width, colour):
        assert cell_len(re.sub(r"\x1b\[[0-9;]*m", "", line)) <= width


def test_a_rising_line_rises_in_the_terminal_too():
    rows = [
        line for line in printed(Curves({"up": [0.0, 1.0]}, "Up", "x", "y")) if "⠤⠤" not in line
    ]
    dotted = [re.search("[⠁-⣿]", row).start() for row in rows if re.search("[⠁-⣿]", row)]
    assert len(dotted) > 10
    assert dotted == sorted(dotted, reverse=True)


def test_each_curve_is_named_once_in_the_terminal():
    text = "\n".join(printed(Curves({"up": [0, 1], "down": [1, 0]}, "Two", "steps", "share")))
    assert text.count(" up") == text.count(" down") == 1
    assert "steps →" in text
    assert "share ↑" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"series": {}}, "series is empty"),
        ({"series": {"a": [1.0]}, "x": [1, 2]}, "series 'a' has 1 values, and x has 2"),
        ({"series": {"a": [math.nan]}}, "series 'a' has no value that is finite$"),
        ({"series": {"a": [0.0]}, "log": True}, "series 'a' has no value that is finite and pos"),
    ],
)
def test_curves_that_cannot_be_drawn_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Curves(title="T", x_label="x", y_label="y", **arguments)


def test_a_notebook_shows_the_svg():
    assert Curves({"a": [1.0, 2.0]}, "A", "x", "y")._repr_html_().startswith("<svg xmlns=")
