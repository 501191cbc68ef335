"""Which fonts of this machine can draw a text, for files that carry their own letters.

A character no font has would become a box, and nobody would know why; so it is said aloud.
"""

import unicodedata
import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from PIL import ImageFont

from regard.text_width import text_width

DEFAULT_FONT = "DejaVu Sans"  # comes with matplotlib, and knows Persian
LAST_RESORT = "Last Resort"  # a font that has a box for everything


def choose_fonts(text: str) -> list[str]:
    """The default font, then others that have what it lacks."""
    families = [DEFAULT_FONT]
    missing = missing_characters(text, DEFAULT_FONT)
    for family in installed_fonts() if missing else ():
        if len(fewer := missing_characters("".join(missing), family)) < len(missing):
            families.append(family)
            missing = fewer
    if missing:
        warnings.warn(
            f"no installed font has {' '.join(sorted(missing))}: drawn as boxes here, while an SVG "
            "or HTML file leaves the font to its reader",
            stacklevel=2,
        )
    return families


def missing_characters(text: str, family: str) -> set[str]:
    """The characters of the text that the font has no shape for, and that need one."""
    return {c for c in text if ord(c) not in font_characters(family) and not is_formless(c)}


def is_formless(character: str) -> bool:
    """Whether a character has no shape of its own: joiners and variation selectors shape others."""
    return unicodedata.category(character) == "Cf" or "\ufe00" <= character <= "\ufe0f"


def measure_text(text: str, size: float) -> float:
    """The width of a text in the default font; an estimate for letters that it may lack."""
    return sum(_measure_letter(letter) for letter in text) * size


@cache
def _measure_letter(letter: str) -> float:
    # Latin, Greek and Cyrillic, which the default font has; it is not asked which others.
    return _default_font().getlength(letter) / 100 if ord(letter) < 0x500 else text_width(letter, 1)


@cache
def _default_font() -> ImageFont.FreeTypeFont:
    """The default font as it comes with matplotlib, which takes long to import and need not be."""
    found = find_spec("matplotlib")
    assert found is not None and found.origin is not None
    return ImageFont.truetype(Path(found.origin).parent / "mpl-data/fonts/ttf/DejaVuSans.ttf", 100)


def replace_control_pictures(text: str) -> str:
    """␀ becomes ^@, as terminals show it: hardly any font has pictures of control characters."""
    return "".join(to_caret(c) if "\u2400" <= c <= "\u2421" else c for c in text)


def to_caret(picture: str) -> str:
    """␀ → ^@"""
    return "^?" if picture == "␡" else "^" + chr(ord(picture) - 0x2400 + 0x40)


@cache
def installed_fonts() -> dict[str, str]:
    """Every regular font and its file, those without serifs first: they go with ours."""
    from matplotlib.font_manager import fontManager

    regular = [
        font for font in fontManager.ttflist if font.style == "normal" and font.weight == 400
    ]
    files = {font.name: font.fname for font in regular if not font.name.startswith(LAST_RESORT)}
    return dict(sorted(files.items(), key=lambda font: ("Sans" not in font[0], font[0])))


@cache
def font_characters(family: str) -> frozenset[int]:
    """The code points that a font has a shape for."""
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(installed_fonts()[family]).get_charmap())
