"""How wide a text comes out in a drawing, without a font at hand. Imports nothing of ours."""

from __future__ import annotations

import unicodedata
from functools import cache

NARROW = frozenset("ijlftrI.,:;·|!'[]()/\\- ")
WIDE = frozenset("mwMW%@…—ÆæŒœ©®¼½¾")
AS_CAPITALS = frozenset("#&^")


def text_width(text: str, size: float) -> float:
    """Estimate the width of `text` in a sans-serif font of `size`.

    Which font it will be only the reader's machine knows, so the widths are those of DejaVu Sans,
    wider than nearly all: a text may come out narrower than the room kept for it, not wider.
    """
    return size * sum(map(_em, text))


@cache
def _em(letter: str) -> float:
    """The width of one letter, as a share of the font's size."""
    base = unicodedata.normalize("NFD", letter)[0]  # é is as wide as e
    category = unicodedata.category(base)
    if category in ("Mn", "Me", "Cf"):  # marks over another letter, and joiners
        return 0.0
    if base in WIDE or unicodedata.east_asian_width(base) in "WF":
        return 1.02
    if base in NARROW:
        return 0.42
    if base.isascii() and category in ("Ll", "Nd"):
        return 0.64
    if base in AS_CAPITALS or category in ("Lu", "Sm", "So"):
        return 0.85
    return 0.75
