"""Strings become ids and come back: six kinds of tokenizer, each token's place always at hand."""

from .config import KINDS, TextConfig
from .forking import mind_forks
from .specials import END, PAD, START, UNKNOWN
from .tokenizer import Encoded, Tokenizer

__all__ = [
    "END",
    "KINDS",
    "PAD",
    "START",
    "UNKNOWN",
    "Encoded",
    "TextConfig",
    "Tokenizer",
]

mind_forks()
