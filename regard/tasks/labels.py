"""What stands beside the rows and columns of a look."""

from __future__ import annotations

from collections.abc import Sequence

from regard.attention import Label, Side
from regard.text import Encoded, Tokenizer
from regard.text.tokenizer import REPLACEMENT

BYTEWISE = "byte-bpe"
"""Of this kind a token's name stands for its bytes: `ĠcafÃ©` for ␣café. What it is a piece of is
shown instead."""


def token_labels(encoded: Encoded, begin: int = 0) -> list[Label]:
    """What is shown beside the tokens of a text, and where they stand in it, or in a longer text in
    which it begins there."""
    bytewise = encoded.tokenizer.kind == BYTEWISE
    tokens = zip(encoded.tokens, encoded.offsets, strict=True)
    return [
        Label((bytewise and encoded.text[start:end]) or token, begin + start, begin + end)
        for token, (start, end) in tokens
    ]


def text_side(encoded: Encoded) -> Side:
    """A text that was put in."""
    return Side(token_labels(encoded), encoded.text)


def ids_side(ids: Sequence[int], words: Tokenizer) -> Side:
    """Ids that a model chose; special tokens at the end stand for no piece of the text."""
    text = words.decode(ids)
    again = words.encode(text)
    # The same words may be cut in another way when they are read: then nobody knows the places.
    labels = token_labels(again) if again.ids == list(ids[: len(again.ids)]) else []
    return Side([*labels, *(Label(_name(id, words)) for id in ids[len(labels) :])], text)


def _name(id: int, words: Tokenizer) -> str:
    """What a token writes, where its own name is an alphabet of bytes; its name if it writes
    nothing, or half a character."""
    [token] = words.tokens_of([id])
    written = words.decode([id]) if words.kind == BYTEWISE else ""
    return token if not written or REPLACEMENT in written else written
