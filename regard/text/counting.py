"""How often each word and each character was seen, from a stream that is read once."""

import re
from collections import Counter
from collections.abc import Callable, Iterable

# What `tokenizers` calls whitespace (Unicode's White_Space). Python's own `split` would also cut at
# \x1c … \x1f, and then training and encoding would disagree about what a word is.
WHITESPACE = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
WORD_PATTERN = re.compile(f"[^{WHITESPACE}]+")

Fold = Callable[[str], str]


def count_words(lines: Iterable[str], fold: Fold) -> Counter[str]:
    """The words between blanks, after folding (lowercasing, or nothing)."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(WORD_PATTERN.findall(fold(line)))
    return counts


def count_characters(lines: Iterable[str], fold: Fold) -> Counter[str]:
    """Every character, blanks and newlines too."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(fold(line))
    return counts


def rank_by_count(counts: Counter[str]) -> list[str]:
    """Tokens with the most frequent first, equals in alphabetical order: one corpus, one order."""
    return sorted(counts, key=lambda token: (-counts[token], token))
