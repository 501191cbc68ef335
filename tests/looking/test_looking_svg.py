import base64
from io import BytesIO
from xml.etree import ElementTree

import numpy as np
from PIL import Image

from regard.looking import draw_look
from regard.looking.svg import render_svg
from regard.looking.tokens import clip, make_visible

SVG = "{http://www.w3.org/2000/svg}"


def parsed(look):
    return ElementTree.fromstring(render_svg(draw_look(look)))


def map_of(root):
    (group,) = [group for group in root.iter(f"{SVG}g") if group.get("class") == "map"]
    return group


def test_masked_cells_are_hatched_and_zeros_are_the_lightest_colour(small):
    fills = [cell.get("fill") for cell in map_of(parsed(small))]
    scale = draw_look(small).maps[0].scale
    assert fills[2] == "url(#hatch)"
    assert fills[3] == scale.colour(0.0)
    assert fills[1] == scale.colour(0.75) == "#" + bytes(scale.palette[-1]).hex()


def test_a_causal_map_is_as_deep_as_its_choices(causal):
    root = parsed(causal)
    fills = [cell.get("fill") for cell in map_of(root)]
    palette = draw_look(causal).maps[0].scale.palette
    assert fills[0] == fills[8] == "#" + bytes(palette[-1]).hex()  # 1, which is forced, and 0.6
    assert fills[15] == "#" + bytes(palette[round(254 * 0.4 / 0.6)]).hex()
    assert "≥ 0.6" in [text.text for text in root.iter(f"{SVG}text")]


def test_every_cell_has_its_own_rectangle_in_its_row_and_column(small):
    cells = list(map_of(parsed(small)))
    places = [(float(cell.get("x")), float(cell.get("y"))) for cell in cells]
    columns, rows = sorted({x for x, _ in places}), sorted({y for _, y in places})
    assert places == [(x, y) for y in rows for x in columns]
    assert (len(rows), len(columns)) == (2, 3)


def test_hostile_tokens_are_text_and_nothing_else(hostile):
    root = parsed(hostile)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        "svg", "rect", "text", "g", "defs", "pattern", "path",
    }  # fmt: skip
    assert not [name for element in root.iter() for name in element.attrib if name[:2] == "on"]
    shown = {element.text for element in root.iter(f"{SVG}text")}
    assert {clip(make_visible(label.text), 18) for label in hostile.keys} <= shown


def test_a_leftward_token_is_anchored_by_the_end_it_starts_from(persian):
    (word,) = [text for text in parsed(persian).iter(f"{SVG}text") if text.text == "می‌رود"]
    assert word.get("direction") == "rtl"
    assert word.get("text-anchor", "start") == "start"  # its right end, beside the cells
    assert word.get("unicode-bidi") == "isolate"


def test_many_cells_become_one_image_with_holes_over_the_hatching(large):
    group = map_of(parsed(large))
    behind, image = group
    assert behind.get("fill") == "url(#hatch)"
    kind, _, data = image.get("href").partition(",")
    assert kind == "data:image/png;base64"
    pixels = np.asarray(Image.open(BytesIO(base64.b64decode(data))).convert("RGBA"))
    scale = draw_look(large).maps[0].scale
    weights = large.weights[0].numpy()
    assert pixels.shape == (211, 211, 4)
    assert (pixels[..., 3] == np.where(large.mask.numpy(), 255, 0)).all()
    for row, column in [(0, 0), (210, 0), (131, 17), (210, 210)]:
        assert tuple(pixels[row, column, :3]) == scale.rgb(weights[row, column])


def test_two_drawings_on_one_page_have_ids_of_their_own(small):
    drawing = draw_look(small)
    first, second = (
        {
            element.get("id")
            for element in ElementTree.fromstring(render_svg(drawing, prefix=prefix)).iter()
        }
        for prefix in ("one-", "two-")
    )
    assert first & second == {None}


def test_the_picture_says_in_words_what_it_shows(small):
    assert parsed(small).get("aria-label") == (
        "decoder.attention: cross-attention · 2 queries × 3 keys"
    )
