"""Estimated widths against the advances of DejaVu Sans, the font that comes with matplotlib."""

from pathlib import Path

import matplotlib
import pytest
from matplotlib.ft2font import FT2Font

from regard.text_width import text_width

SOFT_HYPHEN = "\xad"


@pytest.fixture(scope="module")
def drawn():
    """drawn("text"): its width in DejaVu Sans, as a share of the size, without kerning."""
    font = FT2Font(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"))
    font.set_size(100, 72)  # 100 points at 72 dots an inch: 100 pixels
    return lambda text: sum(font.load_char(ord(c)).linearHoriAdvance for c in text) / 65536 / 100


def test_no_letter_of_latin_1_is_wider_than_its_estimate(drawn):
    letters = [chr(c) for c in (*range(0x20, 0x7F), *range(0xA0, 0x100)) if chr(c) != SOFT_HYPHEN]
    assert [c for c in letters if drawn(c) > text_width(c, 1.0)] == []


@pytest.mark.parametrize(
    "text",
    [
        "∂ gradient of the output",
        "(5, 7) −1.2 … 0.8",
        "cross_entropy",
        "HELLO WORLD",
        "<pad> [CLS] mmm",
        "quatre-vingt-dix-neuf",
        "Ξεσκεπάζω την ψυχοφθόρα",
        "Съешь ещё этих булок",
        "پانصد میلیون و بیست",
    ],
)
def test_a_text_has_room_and_not_much_more(drawn, text):
    assert drawn(text) <= text_width(text, 1.0) <= 1.3 * drawn(text)


def test_the_width_grows_with_the_size():
    assert text_width("matmul", 24.0) == pytest.approx(2 * text_width("matmul", 12.0))
    assert text_width("", 12.0) == 0.0


def test_marks_and_joiners_take_no_room_and_wide_letters_a_whole_em():
    assert text_width("e\u0301", 1.0) == text_width("é", 1.0) == text_width("e", 1.0)
    assert text_width("می\u200cرود", 1.0) == text_width("میرود", 1.0)
    assert text_width("単語", 10.0) == pytest.approx(20.4)
    assert text_width("한", 10.0) == pytest.approx(10.2)  # a syllable, not its three parts
