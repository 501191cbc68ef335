from dataclasses import replace

import numpy as np
import pytest
import torch

from regard.attention import Look
from regard.looking import draw_look
from regard.looking.drawing import Cells, Text, stack
from regard.looking.frame import format_weight
from regard.text_width import text_width


def texts(drawing):
    return [mark.text for mark in drawing.marks if isinstance(mark, Text)]


def labels(drawing, text):
    return [mark for mark in drawing.marks if isinstance(mark, Text) and mark.text == text]


def test_rows_are_queries_and_columns_are_keys(small):
    drawing = draw_look(small)
    (cells,) = drawing.maps
    (row,), (column,) = labels(drawing, "b"), labels(drawing, "z")
    assert cells.y[1] < row.y < cells.y[2]
    assert row.x < cells.x[0]
    assert cells.x[2] < column.x < cells.x[3]
    assert column.y < cells.y[0]
    assert cells.values[1, 2] == pytest.approx(0.6)


def test_a_small_map_writes_its_numbers_where_one_may_look(small):
    shown = texts(draw_look(small))
    assert [text for text in shown if text in (".25", ".75", "0", ".40", ".60")] == [
        ".25",
        ".75",
        "0",
        ".40",
        ".60",
        "0",  # the last is the lower end of the legend
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"), (1.0, "1"), (0.424, ".42"), (0.004, ".00"), (0.996, "1.0"), (-0.08, "-.08"),
        (1.52, "1.5"), (-9.87, "-9.9"), (12.4, "12"), (345.6, "346"), (23456.0, "2e4"),
    ],
)  # fmt: skip
def test_a_number_is_as_short_as_can_be(value, shown):
    assert format_weight(value) == shown


def test_a_map_of_thirteen_tokens_writes_no_numbers():
    tokens = [f"t{at}" for at in range(13)]
    look = Look.of_weights(torch.full((13, 13), 0.37), queries=tokens, keys=tokens)
    assert ".37" not in texts(draw_look(look))


def test_heads_are_small_multiples_on_one_scale(heads):
    maps = draw_look(heads).maps
    assert [cells.place.head for cells in maps] == [0, 1, 2]
    assert len({cells.scale for cells in maps}) == 1
    assert maps[0].scale.high == heads.weights.max()
    assert "one scale for all heads" in texts(draw_look(heads))


def test_the_maps_of_senses_are_called_senses(heads):
    shown = texts(draw_look(replace(heads, kind="senses")))
    assert "one scale for all senses" in shown
    assert any(text.startswith("sense weights · 3 senses · ") for text in shown)


def test_the_legend_of_a_causal_map_says_that_some_weights_are_beyond_its_scale(causal, small):
    drawing = draw_look(causal)
    (cells,) = drawing.maps
    assert cells.scale.high == pytest.approx(0.6)
    assert cells.levels[0, 0] == cells.levels[2, 0] == cells.levels.max()
    shown = texts(drawing)
    assert "≥ 0.6" in shown
    assert "rows with one or few visible keys do not set the scale" in shown
    assert {"1", ".60", ".55"} <= set(shown)  # the numbers are what they are
    assert "0.75" in texts(draw_look(small))
    assert not any("≥" in text or "few visible" in text for text in texts(draw_look(small)))


def test_tokens_stand_on_the_outer_axes_only():
    tokens = [f"word{at}" for at in range(12)]
    look = Look.of_weights(torch.rand(12, 12, 12), queries=tokens, keys=tokens)
    drawing = draw_look(look)
    tops = {cells.y[0] for cells in drawing.maps}
    lefts = {cells.x[0] for cells in drawing.maps}
    assert (len(tops), len(lefts)) == (3, 4)
    assert len(labels(drawing, "word5")) == 3 + 4


def test_masked_cells_are_explained_only_where_there_are_some(small):
    assert "masked: may not look" in texts(draw_look(small))
    unmasked = Look.of_weights(torch.eye(2), queries="ab", keys="xy")
    assert "masked: may not look" not in texts(draw_look(unmasked))


def test_over_an_image_each_query_has_a_map_in_its_shape():
    weights = torch.rand(2, 3, 5 * 7)
    keys = [f"{row},{column}" for row in range(5) for column in range(7)]
    look = Look.of_weights(weights, kind="image", queries="abc", keys=keys, grid=(5, 7))
    maps = draw_look(look).maps
    assert len(maps) == 6
    cells, place = maps[4], maps[4].place
    assert cells.values.shape == (5, 7)
    assert (place.head, place.query) == (1, 1)
    key = place.key + 3 * place.key_step + 2 * place.key_across
    assert keys[key] == "3,2"
    assert cells.values[3, 2] == weights[1, 1, key]


def test_one_query_over_a_text_becomes_a_strip_above_the_words():
    words = ["a", "very", "good", "little", "book"]
    look = Look.of_weights(torch.rand(1, 5), kind="pool", queries=["sentence"], keys=words)
    drawing = draw_look(look)
    (strip,) = drawing.maps
    for at, word in enumerate(words):
        (label,) = labels(drawing, word)
        assert strip.x[at] < label.x < strip.x[at + 1]
        assert label.y > strip.y[1]


def test_a_strip_over_persian_starts_at_the_right():
    words = ["دختر", "کوچولو", "بالا", "می\u200cرود"]
    look = Look.of_weights(torch.rand(1, 4), kind="pool", queries=["جمله"], keys=words)
    drawing = draw_look(look)
    (strip,) = drawing.maps
    place = [labels(drawing, word)[0].x for word in words]
    assert place == sorted(place, reverse=True)
    keys = [strip.place.key + column * strip.place.key_across for column in range(4)]
    assert keys == [3, 2, 1, 0]
    assert np.array_equal(strip.values[0], look.weights[0, 0].numpy()[keys])


def test_a_long_strip_breaks_into_lines():
    words = [f"word{at}" for at in range(61)]
    look = Look.of_weights(torch.rand(1, 61), kind="pool", queries=["s"], keys=words)
    lines = draw_look(look).maps
    assert len(lines) > 1
    assert sum(line.values.size for line in lines) == 61
    assert lines[1].place.key == lines[0].values.size


def test_a_wide_flat_map_keeps_rows_one_can_see():
    keys = [f"slot {at}" for at in range(300)]
    look = Look.of_weights(torch.rand(3, 300), kind="memory", queries="abc", keys=keys)
    (cells,) = draw_look(look).maps
    assert np.diff(cells.y).min() >= 12
    assert any("one in 4 is named" in text for text in texts(draw_look(look)))


def test_nothing_to_look_at_is_said():
    look = Look.of_weights(torch.zeros(1, 0), queries=["first"], keys=[])
    assert "no key is there to be looked at" in texts(draw_look(look))


@pytest.fixture(params=["small", "heads", "hostile", "persian", "large"])
def drawing(request):
    return draw_look(request.getfixturevalue(request.param))


def test_nothing_is_drawn_beyond_the_sheet(drawing):
    for mark in drawing.marks:
        if isinstance(mark, Cells):
            x, y, width, height = mark.box
            assert x >= 0
            assert y >= 0
            assert x + width <= drawing.width
            assert y + height <= drawing.height
        elif not mark.rotation:
            shift = {"start": 0, "middle": 0.5, "end": 1}[mark.anchor]
            left = mark.x - shift * text_width(mark.text, mark.size)
            assert left >= 0
            assert left + text_width(mark.text, mark.size) <= drawing.width
            assert 0 <= mark.y <= drawing.height


def test_cells_never_lie_on_one_another(drawing):
    boxes = [mark.box for mark in drawing.marks if isinstance(mark, Cells)]
    for at, (x, y, width, height) in enumerate(boxes):
        for left, top, across, down in boxes[at + 1 :]:
            apart = left >= x + width or x >= left + across or top >= y + height or y >= top + down
            assert apart


def test_stacked_drawings_keep_their_order_and_do_not_overlap(small, heads):
    first, second = draw_look(small), draw_look(heads)
    both = stack([first, second])
    assert both.height == first.height + second.height
    assert both.width == max(first.width, second.width)
    assert both.maps[1].y[0] == second.maps[0].y[0] + first.height
