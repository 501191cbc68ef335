"""Words as a run cuts them out of a text, spelled, and their vectors in context."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from regard.data.batches import inner_positions
from regard.data.spelled import pad_spellings
from regard.layers.pooling import mean_of_words
from regard.tasks.answers import Candidate
from regard.tasks.resources import Resources
from regard.text import Tokenizer
from regard.text.spelling import Spelling, spell


def cut_words(text: str, words: Tokenizer | None) -> list[str]:
    """The words of a text as the run's tokenizer cuts them; at blanks where it has none."""
    return text.split() if words is None else words.words_of(text)


def spell_all(texts: Iterable[str], words: Tokenizer | None) -> Iterator[list[Spelling]]:
    """The words of each text as they are spelled."""
    return ([spell(word) for word in cut_words(text, words)] for text in texts)


class EmbedWords:
    """A vector for each word of a text, from what stands around it.

    `layer` 0 is the words' own vectors, 1 and above what the layers make of them; without it, their
    mix: as it was learned, or all alike. Every text is read from the start, or, `stateful`, goes on
    where the one before it ended. `pooling` "mean" gives one vector a text, the mean of its words'.
    """

    def __init__(
        self,
        task: Any,
        model: Any,
        resources: Resources,
        pooling: str | None = None,
        layer: int | None = None,
        stateful: bool = False,
    ):
        count = model.config.layers
        if layer is not None and (type(layer) is not int or not 0 <= layer <= count):
            raise ValueError(f"layer ({layer!r}) must be from 0, the words' own, to {count}")
        if pooling not in (None, "mean"):
            raise ValueError(f"pooling ({pooling!r}) must be 'mean', or be left out")
        self.model, self.words, self.pooling = model, resources.tokenizer, pooling
        self.place = -1 if layer is None else layer  # the mix stands behind the layers
        self.in_order = stateful
        self.state: Any = None

    def encode(self, text: str) -> list[Spelling]:
        [spelled] = spell_all([text], self.words)
        return spelled

    @torch.no_grad()
    def answer(self, encoded: list[list[Spelling]], numbers: list[int]) -> list[list[Candidate]]:
        """The vectors of each text's words; a text without words has none."""
        characters, mask = pad_spellings(encoded)
        found, state = self.model.embed(characters, mask, self.state)
        if self.in_order:
            self.state = state
        vectors, words = found[self.place], inner_positions(mask)
        if self.pooling == "mean":
            return [[Candidate(row, 0.0)] for row in mean_of_words(vectors, words).tolist()]
        rows = zip(vectors, words, strict=True)
        return [[Candidate(row[real].tolist(), 0.0)] for row, real in rows]
