"""A document shaded at both levels, on its own text."""

import io
import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from regard.attention import Label, Look
from regard.looking import Looks, draw_look
from regard.looking.documents import is_document, make_document_view, shade_words
from regard.looking.drawing import Text

TEXT = "It rains. I LOVE it!"
PLACES = [[(0, 2), (3, 8), (8, 9)], [(10, 11), (12, 16), (17, 19), (19, 20)]]
WORDS = [[0.5, 0.25, 0.25], [0.1, 0.7, 0.1, 0.1]]


def look_at(weights, keys, path, query, **rest):
    weights = torch.tensor([weights])
    return Look.of_weights(weights, path=path, kind="pool", queries=[query], keys=keys, **rest)


@pytest.fixture
def document():
    inner = tuple(
        look_at(
            weights,
            [Label(TEXT[begin:end].lower(), begin, end) for begin, end in places],
            "words.attention",
            "s",
            key_text=TEXT,
        )
        for weights, places in zip(WORDS, PLACES, strict=True)
    )
    sentences = [Label("It rains.", 0, 9), Label("I LOVE it!", 10, 20)]
    path = "sentences.attention"
    return look_at([0.36, 0.64], sentences, path, "good", key_text=TEXT, inner=inner)


def test_a_word_is_shaded_by_its_weight_times_the_root_of_its_sentence_s(document):
    expected = [0.6 * weight for weight in WORDS[0]] + [0.8 * weight for weight in WORDS[1]]
    assert shade_words(document).tolist() == pytest.approx(expected)
    assert make_document_view(document).scale.high == pytest.approx(0.56)
    assert math.sqrt(0.64) * 0.7 == pytest.approx(0.56)


def test_it_is_one_drawing_of_the_text_as_it_was_written(document):
    (drawing,) = Looks([document]).drawings()
    words = [mark for mark in drawing.marks if isinstance(mark, Text)]
    shown = [mark.text for mark in words]
    assert shown[2:6] == ["It", "rains", ".", ".36"]
    assert shown[6:11] == ["I", "LOVE", "it", "!", ".64"]
    gaps = [after.x - before.x - before.width for before, after in pairwise(words[2:5])]
    assert gaps == pytest.approx([5, 0])  # a blank before «rains», none before the full stop
    line, bar, other_line, other_bar = drawing.maps
    assert line.values.tolist() == [pytest.approx([0.3, 0.15, 0.15])]
    assert other_line.values.max() == pytest.approx(0.56)
    assert bar.values.tolist() == [pytest.approx([0.36])]
    assert other_bar.box[1] == other_line.box[1] > line.box[1] == bar.box[1]
    red, _, blue = other_bar.scale.rgb(0.4)
    assert red > blue
    red, _, blue = other_line.scale.rgb(0.4)
    assert blue > red


def test_a_long_sentence_has_one_bar_beside_all_its_lines_and_keeps_commas_with_their_words():
    text = "word, " * 60
    keys = [
        label
        for at in range(60)
        for label in (Label("word", 6 * at, 6 * at + 4), Label(",", 6 * at + 4, 6 * at + 5))
    ]
    inner = look_at([1 / 120] * 120, keys, "words", "s", key_text=text)
    whole = look_at([1.0], [Label(text, 0, 359)], "sentences", "c", key_text=text, inner=(inner,))
    *lines, bar = draw_look(whole).maps
    assert len(lines) > 2
    assert bar.box[1] == lines[0].box[1]
    assert bar.box[3] > lines[-1].box[1] - lines[0].box[1]
    assert all(line.place.key % 2 == 0 for line in lines)


def test_the_terminal_shows_it_with_and_without_colour(document):
    plain, coloured = io.StringIO(), io.StringIO()
    Looks([document]).print(plain, colour=False, width=60)
    lines = [line.rstrip() for line in plain.getvalue().splitlines()]
    assert lines[1] == "document read as «good» · 2 sentences · 7 words"
    assert lines[3:7] == [
        "▒.36  ▒▒ ░░░░░░",
        "      It rains.",
        "█.64  ░ ████ ░░░",
        "      I LOVE it!",
    ]
    Looks([document]).print(coloured, colour=True, width=60)
    assert "LOVE" in coloured.getvalue()
    assert len(coloured.getvalue().splitlines()) == len(lines) - 2  # the shades are behind words


def test_no_line_is_wider_than_the_terminal_also_where_there_are_no_blanks():
    keys = [Label(f"word{at}", 6 * at, 6 * at + 6) for at in range(10, 40)]
    keys.append(Label("x" * 30, 240, 270))
    text = "." * 270
    inner = look_at([1 / 31] * 31, keys, "words", "s", key_text=text)
    whole = look_at([1.0], [Label(text, 0, 270)], "sentences", "c", key_text=text, inner=(inner,))
    shown = io.StringIO()
    Looks([whole]).print(shown, colour=False, width=20)
    lines = shown.getvalue().splitlines()
    assert max(map(len, lines)) == 20
    assert sum(line.count("......") for line in lines) >= 30


def test_what_is_saved_is_both_levels_as_they_were(document, tmp_path):
    Looks([document]).save(tmp_path / "x.json")
    (again,) = Looks.load(tmp_path / "x.json")
    assert again == document
    assert torch.equal(again.inner[1].weights, document.inner[1].weights)
    assert Looks([again]).tokens == ("it", "rains", ".", "i", "love", "it", "!")


def test_markup_in_a_review_stays_text(document, tmp_path):
    label = Label("<script>alert(1)</script>")
    inner = look_at([1.0], [label], "words.attention", "s")
    hostile = look_at([1.0], [label], "sentences.attention", "<b>", inner=(inner,))
    Looks([hostile]).save(tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_only_pools_of_pools_are_documents(document):
    assert is_document(document)
    assert not is_document(document.inner[0])
    assert not is_document(replace(document, inner=document.inner[:1]))
