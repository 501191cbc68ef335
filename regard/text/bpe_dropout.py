"""Words cut into other pieces than the best ones, so that a model meets the rarer pieces too.

Byte-pair encoding merges the most frequent pair of neighbours, again and again. With dropout each
possible merge is passed over with probability p, drawn anew every time one is chosen; p = 0 gives
the usual pieces, p = 1 single characters.

Provilkov, Emelianenko & Voita (2020), "BPE-Dropout: Simple and Effective Subword Regularization",
algorithm 1. Done here and not by `tokenizers`, whose draws cannot be seeded.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from itertools import chain, pairwise
from random import Random

from regard.text.tokenizer import Tokenizer

KINDS = ("bpe", "byte-bpe")
MAX_DRAWS = 8
"""Cuts of one word that are drawn at once for a corpus; where it stands more often, they recur."""

Cut = list[int]


class BPEDropout:
    """Cuts words by a tokenizer's merges, some of which are dropped."""

    def __init__(self, tokenizer: Tokenizer, rate: float):
        if tokenizer.kind not in KINDS:
            raise ValueError(
                f"bpe_dropout ({rate}) is for text.kind 'bpe' or 'byte-bpe', which merge pieces: "
                f"{tokenizer.kind!r} does not"
            )
        if not 0.0 <= rate <= 1.0:
            raise ValueError(f"bpe_dropout ({rate}) must be from 0 to 1")
        model = json.loads(tokenizer.to_json())["model"]
        self.rate, unknown = rate, tokenizer.unknown
        # Bytes can spell everything, and need no unknown.
        self.unknown = -1 if unknown is None else unknown
        # A text that spells a special is text like all other.
        self.ids = {
            piece: number
            for piece, number in model["vocab"].items()
            if piece not in tokenizer.specials
        }
        self.ranks = {tuple(pair): rank for rank, pair in enumerate(model["merges"])}

    def cut(self, word: str, random: Random) -> Cut:
        """The ids of one word, as the tokenizer hands it to its merges (`▁runs`)."""
        pieces, draw, rate = list(word), random.random, self.rate
        while len(pieces) > 1:
            pairs = enumerate(pairwise(pieces))
            found = [(self.ranks[pair], at) for at, pair in pairs if pair in self.ranks]
            if rate:
                found = [each for each in found if draw() >= rate]
            if not found:
                break
            _, at = min(found)
            pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
        return [self.ids.get(piece, self.unknown) for piece in pieces]


class BPEDroppedTexts:
    """Texts whose words are cut anew every time they are asked for."""

    def __init__(self, texts: Iterable[str], tokenizer: Tokenizer, rate: float):
        self.dropout = BPEDropout(tokenizer, rate)
        numbers: dict[str, int] = {}
        self.texts = [
            [numbers.setdefault(word, len(numbers)) for word in tokenizer.stretches_of(text)]
            for text in texts
        ]
        self.words = list(numbers)
        self.counts = Counter(chain.from_iterable(self.texts))

    def draw(self, seed: int) -> list[Cut]:
        """The ids of every text; one seed, one answer."""
        random = Random(seed)
        cuts = [
            [self.dropout.cut(word, random) for _ in range(min(self.counts[number], MAX_DRAWS))]
            for number, word in enumerate(self.words)
        ]
        return [
            list(chain.from_iterable(random.choice(cuts[number]) for number in text))
            for text in self.texts
        ]
