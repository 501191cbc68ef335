"""Tokens as people can see them.

A token is any string at all: a space, a line break, nothing, half a character. A picture must show
that it is there, must not be thrown out of line by it, and must not let it steer other text.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from rich.cells import cell_len

from regard.attention import Label

SPACE, BREAK, TAB, EMPTY = "␣", "↵", "⇥", "∅"
JOINERS = "\u200c\u200d"  # Persian and emoji are spelled with them, so inside a token they stay
MAX_TOKEN_CELLS = 18  # cells of a token that a label shows; a page shows the rest on hovering
ISOLATE, RELEASE = "\u2068", "\u2069"
WORD_MARK = "▁"  # where a word begins, as sentencepiece and its relatives write it


def make_visible(text: str) -> str:
    """The token with its spaces, breaks and controls made visible."""
    if not text:
        return EMPTY
    if not text.strip(JOINERS):
        return "".join(map(format_code_point, text))
    inner = text.strip(" ")
    before = len(text) - len(text.lstrip(" "))
    after = len(text) - len(inner) - before
    signs = SPACE * before + "".join(map(make_character_visible, inner)) + SPACE * max(after, 0)
    # A mark with nothing to sit on would be drawn over its neighbour.
    return "◌" + signs if unicodedata.combining(signs[0]) else signs


def drop_word_marks(*sides: Sequence[Label]) -> tuple[tuple[Label, ...], ...]:
    """The labels of both sides without their marks, where every piece of a text is a whole word.

    A mark tells a word from a piece that goes on with one. Where none does, it tells nothing.
    """

    def is_word(label: Label) -> bool:
        marked = label.text.startswith(WORD_MARK)
        return marked and label.text != WORD_MARK if label.start is not None else not marked

    if not all(is_word(label) for labels in sides for label in labels):
        return tuple(map(tuple, sides))
    return tuple(
        tuple(replace(label, text=label.text.removeprefix(WORD_MARK)) for label in labels)
        for labels in sides
    )


def make_character_visible(character: str) -> str:
    """The character, or a sign for it where there would be nothing to see."""
    if character in " " + JOINERS:
        return character
    if character in "\n\u2028\u2029":
        return BREAK
    if character == "\t":
        return TAB
    category = unicodedata.category(character)
    if category == "Zs":
        return SPACE
    if category == "Cs" or ord(character) & 0xFFFE == 0xFFFE:
        return "\ufffd"  # half a pair, or no character: no file could be written with it
    if category == "Cc":
        return control_picture(character)
    return format_code_point(character) if category == "Cf" else character


def control_picture(character: str) -> str:
    """The sign for a control character: ␀ for U+0000."""
    point = ord(character)
    if point < 0x20:
        return chr(0x2400 + point)
    return "␡" if point == 0x7F else format_code_point(character)


def format_code_point(character: str) -> str:
    """A character by its number: U+202E, left as it is, would turn others round."""
    return f"⟨{ord(character):04X}⟩"


def replace_surrogates(text: str) -> str:
    """The text with halves of pairs replaced, one for one: no file in UTF-8 can hold them."""
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)


def direction(text: str) -> str:
    """`rtl` when the first letter with a direction runs to the left, else `ltr`."""
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in ("R", "AL"):
            return "rtl"
        if kind == "L":
            return "ltr"
    return "ltr"


def mostly_right_to_left(words: Sequence[str]) -> bool:
    """Whether more than half of the words run from right to left."""
    return sum(direction(word) == "rtl" for word in words) > len(words) / 2


def has_right_to_left(text: str) -> bool:
    """Whether anything in the text runs from right to left."""
    return any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in text)


def isolate(text: str) -> str:
    """The text for a terminal line, unable to reorder what stands beside it."""
    return ISOLATE + text + RELEASE if has_right_to_left(text) else text


def clip(text: str, cells: int) -> str:
    """At most `cells` terminal cells of the text, with … where something was cut."""
    if cell_len(text) <= cells:
        return text
    start = ""
    for character in text:
        if cell_len(start + character) > cells - 1:
            break
        start += character
    return start + "…"
