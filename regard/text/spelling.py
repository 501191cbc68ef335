"""Words as the bytes they are written in, for models that read characters and need no vocabulary.

    spell("né")   # (259, 111, 196, 170, 260, 261, …): word start, three bytes, word end, filler

Every number is one more than what it stands for, so that 0 is left for where there is no word:
bytes are 1 to 256, and behind them come the marks. Two more words stand around a sentence.
"""

from __future__ import annotations

from functools import lru_cache

Spelling = tuple[int, ...]

SPELLING_LENGTH = 50
"""Numbers a word: 48 bytes at most between its two marks; what is longer is cut."""
SENTENCE_START, SENTENCE_END, WORD_START, WORD_END, FILLER = range(257, 262)
CHARACTERS = 262


@lru_cache(maxsize=1 << 18)  # a corpus has each word many times, and holds its spelling once
def spell(word: str) -> Spelling:
    """The bytes of a word between the marks of its start and end, filled up to 50."""
    return _enclose([byte + 1 for byte in word.encode()])


def _enclose(characters: list[int]) -> Spelling:
    spelled = (WORD_START, *characters[: SPELLING_LENGTH - 2], WORD_END)
    return spelled + (FILLER,) * (SPELLING_LENGTH - len(spelled))


START_SPELLING, END_SPELLING = _enclose([SENTENCE_START]), _enclose([SENTENCE_END])
