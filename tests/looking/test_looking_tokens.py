import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from regard.looking.tokens import clip, direction, isolate, make_visible, replace_surrogates
from regard.text_width import text_width


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("dog", "dog"),
        (" dog", "␣dog"),
        ("dog  ", "dog␣␣"),
        ("   ", "␣␣␣"),
        ("New York", "New York"),
        ("a\nb", "a↵b"),
        ("\t", "⇥"),
        ("", "∅"),
        ("\x00", "␀"),
        ("\x1b[31m", "␛[31m"),
        ("\x7f", "␡"),
        ("\x85", "⟨0085⟩"),
        ("\xa0", "␣"),
        ("\u202eevil", "⟨202E⟩evil"),
        ("\u200b", "⟨200B⟩"),
        ("\u200c", "⟨200C⟩"),
        ("\ud800", "\ufffd"),
        ("\uffff", "\ufffd"),
        ("\u0301", "◌\u0301"),
    ],
)
def test_what_cannot_be_seen_is_made_visible(token, shown):
    assert make_visible(token) == shown


def test_a_persian_word_keeps_the_joiner_it_is_spelled_with():
    assert make_visible("می\u200cخواهم") == "می\u200cخواهم"


@given(st.text(st.characters(), max_size=20))
def test_no_token_carries_a_control_character_into_a_picture(token):
    shown = make_visible(token)
    assert shown.encode()
    invisible = {c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    assert invisible <= set("\u200c\u200d")


@given(st.text(st.characters(), max_size=30), st.integers(1, 20))
def test_a_clipped_token_is_never_wider_than_its_place(token, cells):
    assert cell_len(clip(make_visible(token), cells)) <= cells


def test_clipping_says_that_something_was_cut():
    assert clip("attention", 5) == "atte…"
    assert clip("日本語", 5) == "日本…"
    assert clip("five!", 5) == "five!"


@pytest.mark.parametrize(
    ("text", "expected"), [("سلام", "rtl"), ("שלום", "rtl"), ("12 سلام", "rtl"), ("hi سلام", "ltr")]
)
def test_the_first_letter_decides_the_direction(text, expected):
    assert direction(text) == expected


def test_only_what_runs_leftward_is_isolated():
    assert isolate("dog") == "dog"
    assert isolate("سلام") == "\u2068سلام\u2069"


def test_a_wide_character_is_wider_than_a_narrow_one():
    assert (
        text_width("日", 10)
        > text_width("a", 10)
        == text_width("é", 10)
        == text_width("e\u0301", 10)
    )


def test_a_stored_text_keeps_its_length_so_that_offsets_hold():
    assert replace_surrogates("a\ud800b") == "a\ufffdb"
