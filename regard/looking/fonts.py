"""Which fonts of this machine can draw a text, for the pens that carry their own letters.

A character no font has would become a box, and nobody would know why; so it is said aloud.
"""

import unicodedata
import warnings
from functools import cache

OURS = "DejaVu Sans"  # comes with matplotlib, and knows Persian
LAST_RESORT = "Last Resort"  # has a box for everything


def families(text: str) -> list[str]:
    """Our font, then others that have what it lacks."""
    chosen = [OURS]
    missing = lacking(text, OURS)
    for family in installed() if missing else ():
        if len(fewer := lacking("".join(missing), family)) < len(missing):
            chosen.append(family)
            missing = fewer
    if missing:
        warnings.warn(
            f"no installed font has {' '.join(sorted(missing))}: drawn as boxes here, while an SVG "
            "or HTML file leaves the font to its reader",
            stacklevel=2,
        )
    return chosen


def lacking(text: str, family: str) -> set[str]:
    """The characters of the text that the font has no shape for, and that need one."""
    return {c for c in text if ord(c) not in characters(family) and not formless(c)}


def formless(character: str) -> bool:
    """Joiners and variation selectors shape their neighbours and have no shape themselves."""
    return unicodedata.category(character) == "Cf" or "\ufe00" <= character <= "\ufe0f"


def carets(text: str) -> str:
    """Hardly any font has pictures of control characters: ␀ becomes ^@, as terminals show it."""
    return "".join(caret(c) if "\u2400" <= c <= "\u2421" else c for c in text)


def caret(picture: str) -> str:
    return "^?" if picture == "␡" else "^" + chr(ord(picture) - 0x2400 + 0x40)


@cache
def installed() -> dict[str, str]:
    """Every regular font and its file, those without serifs first: they go with ours."""
    from matplotlib.font_manager import fontManager

    regular = [
        font for font in fontManager.ttflist if font.style == "normal" and font.weight == 400
    ]
    files = {font.name: font.fname for font in regular if not font.name.startswith(LAST_RESORT)}
    return dict(sorted(files.items(), key=lambda font: ("Sans" not in font[0], font[0])))


@cache
def characters(family: str) -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(installed()[family]).get_charmap())
