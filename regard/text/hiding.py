"""Specials are put into ids by whoever wants them there, never read out of a text."""

import json
import secrets
from collections.abc import Iterable
from typing import Any

import tokenizers

from regard.text.kinds import State


def hide_specials(state: State, specials: Iterable[str]) -> tokenizers.Tokenizer:
    """The same tokenizer, same ids, in which the specials have names that no text contains.

    The library looks for special tokens in raw text, and its models for every token they have: a
    user who writes `</s>` would end the sentence. Under another name a special cannot be found,
    and its spelling is text like all other. The names are drawn anew for every tokenizer, since a
    fixed one could be written by someone who knows it.
    """
    secret = secrets.token_hex(16)
    names = {special: f"{special}{secret}" for special in specials}
    hidden = {**state, "model": _rename(state["model"], names)}
    hidden["added_tokens"] = [
        # Taken as it is: a normalizer might shorten it to something that a text does contain.
        {**token, "content": names[token["content"]], "normalized": False}
        if token["content"] in names
        else token
        for token in state["added_tokens"]
    ]
    return tokenizers.Tokenizer.from_str(json.dumps(hidden))


def _rename(model: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """The model with other names for some tokens, and without the merges that spell them."""
    vocabulary = model["vocab"]
    if model["type"] == "Unigram":
        return {**model, "vocab": [[names.get(piece, piece), score] for piece, score in vocabulary]}
    renamed = {
        **model,
        "vocab": {names.get(token, token): number for token, number in vocabulary.items()},
        "unk_token": names.get(model["unk_token"], model["unk_token"]),
    }
    if model["type"] == "BPE":
        prefix = len(model["continuing_subword_prefix"] or "")  # dropped when pieces are joined
        renamed["merges"] = [
            [left, right]
            for left, right in model["merges"]
            if names.keys().isdisjoint((left, right, left + right[prefix:]))
        ]
    return renamed
