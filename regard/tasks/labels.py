"""What stands beside the rows and columns of a look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from regard.attention import Label, Side
from regard.text import Encoded, Tokenizer


def token_labels(encoded: Encoded, begin: int = 0) -> list[Label]:
    """What is shown beside the tokens of a text, and where they stand in it, or in a longer text in
    which it begins there."""
    pieces = zip(encoded.pieces, encoded.offsets, strict=True)
    return [Label(piece, begin + start, begin + end) for piece, (start, end) in pieces]


def mark_second(label: Label) -> Label:
    """A token of the second of two texts that are read together."""
    return replace(label, text=f"{label.text}₂")


def text_side(encoded: Encoded) -> Side:
    """A text that was put in."""
    return Side(token_labels(encoded), encoded.text)


def ids_side(ids: Sequence[int], words: Tokenizer) -> Side:
    """Ids that a model chose; special tokens at the end stand for no piece of the text."""
    text = words.decode(ids)
    again = words.encode(text)
    # The same words may be cut in another way when they are read: then nobody knows the places.
    labels = token_labels(again) if again.ids == list(ids[: len(again.ids)]) else []
    return Side([*labels, *map(Label, words.pieces_of(ids[len(labels) :]))], text)
