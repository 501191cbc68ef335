"""GPT-2's two files, a table of tokens and a list of merges, as a byte-level BPE.

Radford et al. (2019), section 2.2.
"""

import gzip
import json
from pathlib import Path

import tokenizers
from tokenizers import models, pre_tokenizers

from .kinds import assemble


def read_tables(encoder: Path, merges: Path) -> tokenizers.Tokenizer:
    """The tokenizer of an `encoder.json` and its list of merges.

    What is neither a byte nor the product of a merge can only be meant as a special.
    """
    vocabulary = _read_vocabulary(encoder)
    pairs = _read_merges(merges, vocabulary)
    bytewise = set(pre_tokenizers.ByteLevel.alphabet())
    missing = sorted(bytewise - vocabulary.keys())
    if missing:
        raise ValueError(f"encoder ({str(encoder)!r}) has no token for the byte {missing[0]!r}")
    spelled = bytewise.union(left + right for left, right in pairs)
    specials = sorted(vocabulary.keys() - spelled, key=vocabulary.__getitem__)
    model = models.BPE(vocabulary, pairs)
    return assemble("byte-bpe", model, lowercase=False, specials=tuple(specials))


def _read_vocabulary(path: Path) -> dict[str, int]:
    try:
        vocabulary = json.loads(_read_text(path, "encoder"))
    except json.JSONDecodeError as reason:
        raise ValueError(f"encoder ({str(path)!r}) is not JSON: {reason}") from None
    is_table = isinstance(vocabulary, dict)
    if not is_table or sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise ValueError(f"encoder ({str(path)!r}) must map tokens to the ids 0, 1, 2, …")
    return vocabulary


def _read_merges(path: Path, vocabulary: dict[str, int]) -> list[tuple[str, str]]:
    pairs = []
    for number, line in enumerate(_read_text(path, "merges").split("\n"), start=1):
        if not line or (number == 1 and line.startswith("#version")):
            continue
        left, blank, right = line.partition(" ")
        if not blank or not {left, right, left + right} <= vocabulary.keys():
            raise ValueError(
                f"merges ({str(path)!r}), line {number}: {line!r} must be two tokens "
                "whose join is a token too"
            )
        pairs.append((left, right))
    return pairs


def _read_text(path: Path, name: str) -> str:
    try:
        content = path.read_bytes()
        return (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as reason:
        raise ValueError(f"{name} ({str(path)!r}) cannot be read: {reason}") from None
