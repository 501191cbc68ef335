"""Where the sentences of a text begin and end, by rules for languages that write full stops.

    split_sentences("Dr. No is here. Run!")   # [(0, 15), (16, 20)]

A mark (. ! ? …) ends a sentence unless what stands around it says otherwise: an abbreviation, an
initial, the number of a list, a quotation that the sentence goes on after. `<br />` and blank lines
end one too. Offsets point into the raw text, so that what is shaded later is the text itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Span = tuple[int, int]

# What separates paragraphs belongs to no sentence. A single newline is a wrapped line.
_PARAGRAPH_BREAK = re.compile(r"<br\s*/?>|\n[^\S\n]*\n", re.IGNORECASE)
_CLOSERS = "\"'”’»)]*_"
_OPENERS = "\"'“‘«([*_"
_MARKS = re.compile(
    rf"(?<![.!?…])[.!?…]++[{re.escape(_CLOSERS)}]*+(?=\s)"  # before a blank,
    r"|(?<=[a-z][a-z])[.!?]++(?=[A-Z][a-z])"  # or where somebody forgot it: "bad.The"
)
_WORD_BEFORE = re.compile(r"[\w.&'’-]*\Z")
_WORD_AFTER = re.compile(rf"\s*[{re.escape(_OPENERS)}]*([\w'’]*)")
_BLANKS = re.compile(r"\s*")
_LONGEST_ABBREVIATION = 20

_TITLES = """mr mrs ms mx dr prof st sra mme mlle rev hon gen col maj capt cpt cmdr lt sgt pvt gov
sen rep pres supt insp messrs mt ft vs v cf approx e.g i.e eg ie viz"""
TITLES = frozenset(_TITLES.split())
"""Abbreviations that something follows: no sentence ends in them."""
NUMBERED = frozenset(
    ("no", "nos", "vol", "vols", "fig", "figs", "eq", "sec", "ch", "p", "pp", "ca")
)
"""Abbreviations that a number follows; else they are words, and a sentence may end in them."""
_ENDINGS = """etc jr sr inc ltd co corp bros dept univ assn est hr hrs jan feb apr jun jul aug sep
sept oct nov dec a.m p.m u.s u.k u.n d.c ph.d b.a m.a m.d a.k.a r.i.p"""
ENDINGS = frozenset(_ENDINGS.split())
"""Abbreviations that a sentence may end in: the next word says whether it does."""
_STARTERS = """the a an this that these those it its he she we they i you my his her our their
there here in on at for from with by to as if when while after before since because although though
but and so or yet however what who why how where which then now still also even not no one all
some many most"""
STARTERS = frozenset(_STARTERS.split())
"""Words that begin a sentence if they have a capital where none would be needed."""


def split_sentences(text: str) -> list[Span]:
    """(begin, end) of every sentence, without the blanks around it.

    A stretch without letters or digits, as a row of stars, belongs to the sentence before it.
    """
    spans: list[Span] = []
    for paragraph in _paragraphs(text):
        first = len(spans)
        for begin, end in _sentences(text, *paragraph):
            if len(spans) > first and not any(map(str.isalnum, text[begin:end])):
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((begin, end))
    return spans


def _paragraphs(text: str) -> Iterator[Span]:
    begin = 0
    for found in _PARAGRAPH_BREAK.finditer(text):
        yield begin, found.start()
        begin = found.end()
    yield begin, len(text)


def _sentences(text: str, begin: int, end: int) -> Iterator[Span]:
    begin = _skip_blanks(text, begin, end)
    for found in _MARKS.finditer(text, begin, end):
        if _ends_sentence(text, begin, found, end):
            yield begin, found.end()
            begin = _skip_blanks(text, found.end(), end)
    if begin < end:
        yield begin, begin + len(text[begin:end].rstrip())


def _ends_sentence(text: str, begin: int, found: re.Match[str], end: int) -> bool:
    mark = found[0].rstrip(_CLOSERS)
    following = _WORD_AFTER.match(text, found.end(), end)
    assert following is not None
    if len(mark) < len(found[0]) or mark == "…" or mark.startswith(".."):
        # "Stop!" he said; it was … well …; (which is bad.) and so on
        return not following[1][:1].islower()
    if mark != ".":
        return True
    at = found.start()
    before = _WORD_BEFORE.search(text, max(begin, at - _LONGEST_ABBREVIATION), at)
    assert before is not None
    return _ends_after(before[0], before.start() == begin, following[1])


def _ends_after(word: str, first: bool, following: str) -> bool:
    """Whether a full stop between these words ends the sentence; first: nothing is before it."""
    if word.lower() in TITLES:
        return False
    if word.lower() in NUMBERED:
        return not following[:1].isdigit()
    letter = len(word) == 1 and word != "I"
    if first and (word.isdigit() or letter):
        return False  # 1. the number of a list
    if letter or "." in word or word.lower() in ENDINGS:
        return following[:1].isupper() and following.lower() in STARTERS
    return True


def _skip_blanks(text: str, begin: int, end: int) -> int:
    blanks = _BLANKS.match(text, begin, end)
    assert blanks is not None
    return blanks.end()
