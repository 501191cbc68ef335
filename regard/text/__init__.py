"""Strings become ids and come back: six kinds of tokenizer, each token's place always at hand."""

from regard.text.config import KINDS, TextConfig
from regard.text.forking import disable_parallelism_on_fork
from regard.text.roles import ROLES, roles_from_hugging_face
from regard.text.specials import CLASS, END, MASK, PAD, SEPARATOR, START, UNKNOWN
from regard.text.tokenizer import Encoded, Tokenizer

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
