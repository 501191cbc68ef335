"""What stands beside the rows and columns of a look."""

from __future__ import annotations

from regard.attention import Label
from regard.text import Encoded


def token_labels(encoded: Encoded) -> list[Label]:
    """What is shown beside the tokens of a text, and where they stand in it."""
    tokens = zip(encoded.tokens, encoded.offsets, strict=True)
    return [Label(token, *place) for token, place in tokens]
