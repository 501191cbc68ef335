"""Which parts a `tokenizer.json` from a stranger may be made of.

The library trusts its files. Some parts end the whole process when their content is wrong
(Precompiled, FixedLength), some let a text grow a thousandfold (Replace after Replace), and a
regular expression can be written to take years. What is left is what regard itself writes, and
what the published tokenizers of BERT, GPT-2, RoBERTa and Llama are made of.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

MAX_STEPS = 8  # one after the other; published tokenizers have up to four
MAX_PREFIX = 8  # characters that are put before a text
MAX_UNUSED_IDS = 1000  # in a small vocabulary; a large one may have more
ESCAPE = re.compile(r"\\\W")

Part = dict[str, Any]
Check = Callable[[Part], bool]


def refuse_harmful(text: str) -> str:
    """Check a tokenizer.json and give it back; a ValueError names a part that is refused.

    It is written anew, so that what the library reads is what was checked.
    """
    try:
        state = json.loads(text)
        if not isinstance(state, dict):
            raise ValueError("it is not a table of parts")
        for place, known in PARTS.items():
            check_part(place, state.get(place), known)
        return json.dumps(state)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def check_part(place: str, part: Any, known: dict[str, Check]) -> None:
    """Refuse a part that is not known, or that holds what could do harm."""
    steps = list(_flatten(part))
    if len(steps) > MAX_STEPS:
        raise ValueError(f"{place} has {len(steps)} steps, and at most {MAX_STEPS} are allowed")
    for step in steps:
        kind = step.get("type")
        if not isinstance(kind, str) or kind not in known:
            raise ValueError(f"{place} ({str(kind)[:40]!r}) is not one of {', '.join(known)}")
        if not known[kind](step):
            raise ValueError(f"{place} ({kind!r}) has settings that a text could not bear")


def _flatten(part: Any) -> Iterator[Part]:
    """The parts of a sequence, one by one, and those of sequences within it."""
    if part is None:
        return
    if not isinstance(part, dict):
        raise ValueError(f"a part must be a table, and {str(part)[:40]!r} is none")
    inner_lists = [part[name] for name in SEQUENCES if name in part]
    if part.get("type") != "Sequence":
        yield part
    elif len(inner_lists) == 1 and isinstance(inner_lists[0], list):
        for inner in inner_lists[0]:
            yield from _flatten(inner)
    else:
        raise ValueError("a sequence must have one list of parts")


def _always(part: Part) -> bool:
    return True


def _never_grows(part: Part) -> bool:
    """Whether what is put in place of a piece of text is no longer than it."""
    pattern, content = part.get("pattern"), part.get("content")
    piece = pattern.get("String") if isinstance(pattern, dict) else None
    return isinstance(piece, str) and isinstance(content, str) and 0 < len(piece) >= len(content)


def _is_short(part: Part) -> bool:
    """Whether only a few characters are put before a text."""
    prefix = part.get("prepend")
    return isinstance(prefix, str) and len(prefix) <= MAX_PREFIX


def _is_simple(part: Part) -> bool:
    """Whether a pattern is a piece of text, or an expression that never looks at it twice.

    Such are without repetition and without groups, but for those that look ahead, as in
    `first_character_pattern`.
    """
    pattern = part.get("pattern")
    if not isinstance(pattern, dict) or len(pattern) != 1:
        return False
    [(kind, value)] = pattern.items()
    if not isinstance(value, str) or not value:
        return False
    signs = set(ESCAPE.sub("", value).replace("(?=", ""))
    return kind == "String" or (kind == "Regex" and not signs & set("*+?{(\\"))


def _strips_at_most_one(part: Part) -> bool:
    """Whether one character is stripped at most: the library takes more off shorter tokens, too."""
    return part.get("start") in (0, 1) and part.get("stop") == 0


def _has_few_unused_ids(part: Part) -> bool:
    """Whether nearly every id has a token: the library lists those without, up to four billion."""
    vocabulary = part.get("vocab")
    if not isinstance(vocabulary, dict) or not all(type(i) is int for i in vocabulary.values()):
        return False
    return max(vocabulary.values(), default=0) < 2 * len(vocabulary) + MAX_UNUSED_IDS


def _has_no_prefix(part: Part) -> bool:
    """Whether no prefix marks continuations: the library cuts it off tokens without it, too."""
    return _has_few_unused_ids(part) and not part.get("continuing_subword_prefix")


def _allow(*kinds: str) -> dict[str, Check]:
    """Parts of these kinds, whatever their settings."""
    return dict.fromkeys(kinds, _always)


SEQUENCES = ("normalizers", "pretokenizers", "processors", "decoders")
PARTS: dict[str, dict[str, Check]] = {
    "normalizer": {
        **_allow("Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Strip", "StripAccents"),
        **_allow("BertNormalizer", "ByteLevel"),
        "Replace": _never_grows,
        "Prepend": _is_short,
    },
    "pre_tokenizer": {
        **_allow("Whitespace", "WhitespaceSplit", "BertPreTokenizer", "ByteLevel", "Metaspace"),
        **_allow("Digits", "Punctuation", "CharDelimiterSplit", "UnicodeScripts"),
        "Split": _is_simple,
    },
    "model": {
        "WordLevel": _has_few_unused_ids,
        "WordPiece": _has_few_unused_ids,
        "BPE": _has_no_prefix,
        "Unigram": _always,
    },
    "post_processor": _allow(
        "TemplateProcessing", "ByteLevel", "BertProcessing", "RobertaProcessing"
    ),
    "decoder": {
        **_allow("ByteLevel", "WordPiece", "Metaspace", "BPEDecoder", "Fuse", "ByteFallback"),
        "Replace": _never_grows,
        "Strip": _strips_at_most_one,
    },
}
