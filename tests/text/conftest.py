"""Small corpora, and real ones where they are at hand."""

import os
from pathlib import Path

import pytest

from regard.text import END, KINDS, PAD, START, UNKNOWN, TextConfig, Tokenizer
from regard.text.config import PIECES

LINES = (
    "the dog barks at the other dog",
    "the dogs are barking, barking and barking!",
    "İstanbul: straße STRASSE e\u0301te\u0301 👩\u200d👩\u200d👧 漢字 سلام\u200cها",
    "lower lowest newer newest wider widest",
)


def train(kind, lines=LINES, specials=(PAD, UNKNOWN, START, END), **choices) -> Tokenizer:
    """A tokenizer of any kind, with room for a few merges where room is to be given."""
    if kind in PIECES:
        choices.setdefault("vocabulary_size", 400 if kind == "byte-bpe" else 150)
    return Tokenizer.train(iter(lines), TextConfig(kind=kind, **choices), specials)


@pytest.fixture(scope="session")
def trained():
    return train


@pytest.fixture(scope="session")
def corpus() -> tuple[str, ...]:
    return LINES


@pytest.fixture(scope="session")
def every() -> dict[str, Tokenizer]:
    """One of each kind."""
    return {kind: train(kind) for kind in KINDS}


@pytest.fixture
def data() -> Path:
    """The folder with real corpora."""
    here = Path(__file__).parents[2].parent / "shared/data"
    folder = Path(os.environ.get("REGARD_DATA", here))
    if not folder.is_dir():
        pytest.skip("no corpora: set REGARD_DATA to their folder")
    return folder
