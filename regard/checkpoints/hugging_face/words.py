"""The tokenizer of a Hugging Face folder, from whichever files it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenizers import AddedToken

from regard.checkpoints.hugging_face.files import Files
from regard.checkpoints.reading import MAX_TEXT_BYTES
from regard.text import Tokenizer
from regard.text.roles import HUGGING_FACE

TOKENIZER, TOKENIZER_CONFIG, SPECIALS, ADDED = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
)
FLAGS = ("single_word", "lstrip", "rstrip", "normalized")  # how an added token is looked for


def read_tokenizer(files: Files) -> Tokenizer | None:
    """tokenizer.json, else GPT-2's pair of tables, else BERT's list of words; None without them.

    What its special tokens are for is said beside it, in one of two files; tokens that were added
    to a table later, in another, or in the first of these.
    """
    settings = _read_settings(files)
    if TOKENIZER in files:
        content = files.read(TOKENIZER)
        return Tokenizer.from_bytes(content, files.folder / TOKENIZER, None, settings)
    if "vocab.json" in files and "merges.txt" in files:
        vocabulary, merges = (files.find(n, MAX_TEXT_BYTES) for n in ("vocab.json", "merges.txt"))
        return Tokenizer.from_bpe_tables(
            vocabulary,
            merges,
            settings,
            prefix_space=_boolean(settings, "add_prefix_space") is True,
            added=read_added(files, settings),
        )
    if "vocab.txt" in files:
        return Tokenizer.from_word_pieces(
            files.find("vocab.txt", MAX_TEXT_BYTES),
            settings,
            lowercase=_boolean(settings, "do_lower_case") is not False,
            strip_accents=_boolean(settings, "strip_accents"),
            split_chinese=_boolean(settings, "tokenize_chinese_chars") is not False,
            added=read_added(files, settings),
        )
    return None


def _read_settings(files: Files) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name in (TOKENIZER_CONFIG, SPECIALS):
        if name in files:
            settings |= files.read_json(name, MAX_TEXT_BYTES)
    return settings


def read_added(files: Files, settings: Mapping[str, Any]) -> dict[int, AddedToken]:
    """The tokens that were added to a table, by their ids: `added_tokens_decoder` of the
    settings, else the table of added_tokens.json."""
    described = settings.get("added_tokens_decoder")
    try:
        if described is not None:
            return {int(number): _make_added(token) for number, token in described.items()}
        if ADDED not in files:
            return {}
        specials = _spellings(settings)
        ids = files.read_json(ADDED, MAX_TEXT_BYTES)
        return {
            int(number): AddedToken(token, special=token in specials, normalized=True)
            for token, number in ids.items()
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        where = ADDED if described is None else f"{TOKENIZER_CONFIG}: added_tokens_decoder"
        raise ValueError(
            f"{files.folder / where} must be a table of tokens and their ids"
        ) from None


def _make_added(token: Mapping[str, Any]) -> AddedToken:
    flags = {name: bool(token[name]) for name in FLAGS if name in token}
    return AddedToken(token["content"], special=bool(token.get("special")), **flags)


def _spellings(settings: Mapping[str, Any]) -> set[str]:
    """The special tokens that the settings name."""
    named = [settings.get(name) for name in HUGGING_FACE]
    named += settings.get("additional_special_tokens") or []
    return {each["content"] if isinstance(each, Mapping) else each for each in named if each}


def _boolean(settings: dict[str, Any], name: str) -> bool | None:
    """A setting that is true, false or left open."""
    value = settings.get(name)
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"{TOKENIZER_CONFIG}: {name} ({str(value)[:80]}) must be true or false")
    return value
