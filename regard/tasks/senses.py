"""The senses of words by their names: what each predicts, and models in which some are changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import torch
from torch import Tensor

from regard.models.backpack import Backpack, SenseChange
from regard.text import Tokenizer

NamedSenseChange = float | tuple[str, int]
"""As `SenseChange`, with the other word by its name: 0.0, or ("ill", 5)."""
MAX_NEAREST = 3


@dataclass(frozen=True)
class Sense:
    """What one sense of a word speaks for and against, with the logits it adds at full weight."""

    number: int
    raises: tuple[tuple[str, float], ...]  # the most first
    lowers: tuple[tuple[str, float], ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "sense": self.number,
            **{
                name: [{"word": word, "logit": logit} for word, logit in named]
                for name, named in (("raises", self.raises), ("lowers", self.lowers))
            },
        }


@torch.no_grad()
def list_senses(model: Any, words: Tokenizer, word: str, top: int = 10) -> list[Sense]:
    """What each sense of a word predicts: the `top` words whose logits it raises and lowers."""
    if not 1 <= top <= words.size:
        raise ValueError(f"top ({top}) must be from 1 to {words.size}, the words there are")
    backpack = as_backpack(model)
    logits = sense_logits(backpack, find_word(words, word))  # (sense, word)

    def name(found: torch.return_types.topk) -> list[tuple[tuple[str, float], ...]]:
        return [
            tuple(zip(words.tokens_of(ids), values, strict=True))
            for values, ids in zip(found.values.tolist(), found.indices.tolist(), strict=True)
        ]

    raised, lowered = name(logits.topk(top)), name(logits.topk(top, largest=False))
    pairs = zip(raised, lowered, strict=True)
    return [Sense(number, *both) for number, both in enumerate(pairs)]


def sense_logits(model: Backpack, word: int) -> Tensor:
    """E C(w): what each sense adds to the logits of every word, (sense, vocabulary)."""
    logits: Tensor = model.output(model.senses(torch.tensor(word)))
    return logits


def change_senses(
    model: Any, words: Tokenizer, changes: Mapping[str, Mapping[int, NamedSenseChange]]
) -> Backpack:
    """The model with other senses of some words: {"sick": {3: 0.0, 1: ("ill", 5)}}.

    A number multiplies a sense, 0 switches it off; (word, number) puts another's in its place.
    """
    backpack = as_backpack(model)

    def resolve(change: NamedSenseChange) -> SenseChange:
        if isinstance(change, int | float):
            return change
        other, sense = change
        return find_word(words, other), sense

    return backpack.with_senses(
        {
            find_word(words, word): {sense: resolve(change) for sense, change in own.items()}
            for word, own in changes.items()
        }
    )


def as_backpack(model: Any) -> Backpack:
    """The model, if its words have senses."""
    if not isinstance(model, Backpack):
        raise ValueError(
            f"{type(model).__name__} has no senses: only the words of a Backpack do "
            "(model.name = 'backpack')"
        )
    return model


def find_word(words: Tokenizer, word: str) -> int:
    """The id of a word that is one token; a ValueError with the nearest names for others."""
    ids = words.encode(word).ids
    if len(ids) == 1 and ids[0] != words.unknown:
        return ids[0]
    if len(ids) > 1:
        pieces = ", ".join(map(repr, words.tokens_of(ids)))
        raise ValueError(
            f"word ({word!r}) is {len(ids)} tokens here, and each has its own: {pieces}"
        )
    known = [token for token in words.tokens_of(range(words.size)) if token not in words.specials]
    near = get_close_matches(word, known, n=MAX_NEAREST)
    hint = f"; the nearest are {', '.join(near)}" if near else ""
    raise ValueError(f"word ({word!r}) is not among the {words.size} this model knows{hint}")
