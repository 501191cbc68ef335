"""The tokenizer of a Hugging Face folder, from whichever files it has."""

from __future__ import annotations

from typing import Any

from regard.checkpoints.hugging_face.files import Files
from regard.checkpoints.reading import MAX_TEXT_BYTES
from regard.text import Tokenizer

TOKENIZER, TOKENIZER_CONFIG, SPECIALS = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
)


def read_tokenizer(files: Files) -> Tokenizer | None:
    """tokenizer.json, else GPT-2's pair of tables, else BERT's list of words; None without them.

    What its special tokens are for is said beside it, in one of two files.
    """
    settings = _read_settings(files)
    if TOKENIZER in files:
        content = files.read(TOKENIZER)
        return Tokenizer.from_bytes(content, files.folder / TOKENIZER, None, settings)
    if "vocab.json" in files and "merges.txt" in files:
        vocabulary, merges = (files.find(n, MAX_TEXT_BYTES) for n in ("vocab.json", "merges.txt"))
        return Tokenizer.from_bpe_tables(vocabulary, merges, settings)
    if "vocab.txt" in files:
        return Tokenizer.from_word_pieces(
            files.find("vocab.txt", MAX_TEXT_BYTES),
            settings,
            lowercase=_boolean(settings, "do_lower_case") is not False,
            strip_accents=_boolean(settings, "strip_accents"),
            split_chinese=_boolean(settings, "tokenize_chinese_chars") is not False,
        )
    return None


def _read_settings(files: Files) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name in (TOKENIZER_CONFIG, SPECIALS):
        if name in files:
            settings |= files.read_json(name, MAX_TEXT_BYTES)
    return settings


def _boolean(settings: dict[str, Any], name: str) -> bool | None:
    """A setting that is true, false or left open."""
    value = settings.get(name)
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"{TOKENIZER_CONFIG}: {name} ({str(value)[:80]}) must be true or false")
    return value
