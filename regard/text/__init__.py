"""Strings become ids and come back: six kinds of tokenizer, each token's place always at hand."""

from .config import KINDS, TextConfig
from .forking import disable_parallelism_on_fork
from .roles import ROLES, roles_from_hugging_face
from .specials import CLASS, END, MASK, PAD, SEPARATOR, START, UNKNOWN
from .tokenizer import Encoded, Tokenizer

__all__ = [
    "CLASS",
    "END",
    "KINDS",
    "MASK",
    "PAD",
    "ROLES",
    "SEPARATOR",
    "START",
    "UNKNOWN",
    "Encoded",
    "TextConfig",
    "Tokenizer",
    "roles_from_hugging_face",
]

disable_parallelism_on_fork()
