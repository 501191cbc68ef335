import subprocess
import sys
import warnings
from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image

from regard.attention import Look
from regard.looking import draw_look, fonts
from regard.looking.figure import PIXELS_PER_INCH, make_figure, render_pdf, render_png


def pixels(look):
    return np.asarray(Image.open(BytesIO(render_png([draw_look(look)]))).convert("RGB"))


def corner(picture, cells, row, column):
    """The colour near the upper left corner of a cell, where no number is written."""
    x, y, _, _ = cells.rectangles[row, column]
    return tuple(int(part) for part in picture[round(2 * y) + 6, round(2 * x) + 6])


def test_every_cell_of_a_png_has_the_colour_of_the_svg(heads):
    picture = pixels(heads)
    for cells in draw_look(heads).maps:
        for row, column in np.argwhere(~cells.hidden):
            assert corner(picture, cells, row, column) == cells.scale.rgb(cells.values[row, column])


def test_png_and_pdf_show_a_causal_map_as_deep_as_its_choices(causal):
    picture, (cells,) = pixels(causal), draw_look(causal).maps
    deepest = tuple(cells.scale.palette[-1].tolist())
    assert corner(picture, cells, 0, 0) == corner(picture, cells, 2, 0) == deepest
    assert corner(picture, cells, 3, 3) == cells.scale.rgb(0.4) != deepest
    assert "≥ 0.6" in [text.get_text() for text in make_figure(draw_look(causal)).axes[0].texts]


def test_a_masked_cell_is_hatched_in_grey_and_a_zero_is_plain(small):
    picture, (cells,) = pixels(small), draw_look(small).maps

    def colours(row, column):
        x, y, width, height = (2 * cells.rectangles[row, column]).round().astype(int)
        part = picture[y + 2 : y + height // 4, x + 2 : x + width - 2]
        return {tuple(colour) for colour in part.reshape(-1, 3).tolist()}

    assert colours(1, 0) == {cells.scale.rgb(0.0)}
    hatched = colours(0, 2)
    assert len(hatched) > 2
    assert all(max(colour) - min(colour) < 16 for colour in hatched)


def test_a_large_map_is_painted_with_the_same_colours_and_holes(large):
    picture, (cells,) = pixels(large), draw_look(large).maps
    for row, column in [(0, 0), (210, 0), (131, 17)]:
        x, y, _, _ = cells.rectangles[row, column]
        found = tuple(int(part) for part in picture[round(2 * y) + 3, round(2 * x) + 3])
        assert found == cells.scale.rgb(cells.values[row, column])
    x, y, _, _ = cells.rectangles[20, 150]
    hidden = picture[round(2 * y) : round(2 * y) + 60, round(2 * x) : round(2 * x) + 60]
    assert (hidden.max(axis=-1).astype(int) - hidden.min(axis=-1) < 16).all()
    assert len({tuple(colour) for colour in hidden.reshape(-1, 3).tolist()}) > 2


def test_cells_have_no_edges_which_would_close_the_gaps_in_a_pdf(small):
    collections = make_figure(draw_look(small)).axes[0].collections
    assert collections
    assert all(len(drawn.get_edgecolor()) == 0 for drawn in collections)


def test_a_png_has_two_pixels_for_each_of_the_drawing(small):
    drawing = draw_look(small)
    height, width, _ = pixels(small).shape
    assert (width, height) == (int(2 * drawing.width), int(2 * drawing.height))


def test_a_sheet_of_very_many_maps_is_drawn_one_pixel_for_one(small, monkeypatch):
    drawing = draw_look(small)
    monkeypatch.setattr("regard.looking.figure.MAX_PNG_PIXELS", 2 * drawing.width * drawing.height)
    height, width, _ = pixels(small).shape
    assert (width, height) == (int(drawing.width), int(drawing.height))


def test_a_pdf_has_a_page_for_each_look_and_no_date(small, heads):
    drawings = [draw_look(small), draw_look(heads)]
    first = render_pdf(drawings)
    assert first.startswith(b"%PDF-")
    assert first.count(b"/Type /Page ") == 2
    assert first == render_pdf(drawings)
    assert b"CreationDate" not in first


def test_dollars_in_a_token_are_dollars():
    drawn = make_figure(
        draw_look(Look.of_weights(torch.eye(1), queries=["$x_1$"], keys=["$\\frac{"]))
    )
    shown = [text for text in drawn.axes[0].texts if "$" in text.get_text()]
    assert len(shown) == 2
    assert not any(text.get_parse_math() for text in shown)


def test_persian_letters_join():
    """Kept apart by non-joiners, the same letters take more room."""
    joined, apart = (
        make_figure(draw_look(Look.of_weights(torch.eye(1), queries=[word], keys=["x"])))
        for word in ("سلام", "س\u200cل\u200cا\u200cم")
    )

    def width(drawn):
        (word,) = [text for text in drawn.axes[0].texts if "س" in text.get_text()]
        return word.get_window_extent(drawn.canvas.get_renderer(), dpi=PIXELS_PER_INCH).width

    assert width(joined) < 0.9 * width(apart)


def test_a_character_no_font_has_is_told_in_one_line(monkeypatch):
    ours = {fonts.DEFAULT_FONT: fonts.installed_fonts()[fonts.DEFAULT_FONT]}
    monkeypatch.setattr(fonts, "installed_fonts", lambda: ours)
    look = Look.of_weights(torch.eye(2), queries=["日本", "語"], keys="ab")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        render_png([draw_look(look)])
    (warning,) = told
    assert str(warning.message).startswith("no installed font has 日 本 語: drawn as boxes here")


def test_another_font_helps_out_when_ours_lacks_a_character(monkeypatch):
    files = {fonts.DEFAULT_FONT: "ours", "Some Serif": "serif", "Noto Sans CJK JP": "cjk"}
    known = {
        fonts.DEFAULT_FONT: {ord("a")},
        "Some Serif": {ord("b")},
        "Noto Sans CJK JP": {ord("日")},
    }
    monkeypatch.setattr(fonts, "installed_fonts", lambda: files)
    monkeypatch.setattr(fonts, "font_characters", known.__getitem__)
    assert fonts.choose_fonts("a") == [fonts.DEFAULT_FONT]
    assert fonts.choose_fonts("a日") == [fonts.DEFAULT_FONT, "Noto Sans CJK JP"]


def test_control_pictures_become_carets_since_hardly_a_font_has_them():
    assert fonts.replace_control_pictures("a␀␛␡") == "a^@^[^?"


@pytest.mark.parametrize("kind", [render_png, render_pdf])
def test_every_hostile_token_can_be_drawn(hostile, kind):
    assert kind([draw_look(hostile)])


def test_matplotlib_waits_until_it_is_needed_and_pyplot_is_never_touched():
    code = (
        "import sys, torch, regard.looking as looking\n"
        "from regard.attention import Look\n"
        "from regard.looking.figure import render_png\n"
        "assert 'matplotlib' not in sys.modules\n"
        "render_png([looking.draw_look(Look.of_weights(torch.eye(2), queries='ab', keys='xy'))])\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
