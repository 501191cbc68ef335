"""Hierarchical attention: words make a sentence, sentences a document, and some matter more.

h_it = GRU of word t in sentence i, read from both sides
u_it = tanh(W_w h_it + b_w),  α_it = softmax_t(u_itᵀ u_w),  s_i = Σ_t α_it h_it
h_i  = GRU of sentence i among the others, from both sides
u_i  = tanh(W_s h_i + b_s),   α_i  = softmax_i(u_iᵀ u_s),   v   = Σ_i α_i h_i
p(class) = softmax(W v + b)

u_w and u_s are learned: fixed questions, what word tells most here, and what sentence. The words
they find can be shown on the text itself.

Yang, Yang, Dyer, He, Smola & Hovy (2016), "Hierarchical attention networks for document
classification", section 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from regard.attention import Attention, Dot
from regard.data.batches import LabelledDocuments
from regard.layers import Dropout, Embedding, Recurrent
from regard.layers.pooling import maximum_of_words, mean_of_words
from regard.models.checks import check_above_zero, check_at_least, check_one_of, check_rates
from regard.products import Linear

SPREAD, SLACK = 2, 4
"""The longest sentence of a group may be so many times as long as the shortest, and so many words
more. More groups have less padding, and more time steps that are too small to be quick."""
POOLINGS = ("attention", "average", "maximum", "last")


@dataclass(frozen=True, kw_only=True)
class HANConfig:
    """Yang et al. (2016), section 3.3. The defaults are their HN-ATT; presets: rows of table 2."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "hn-att": {"pooling": "attention"},
        "hn-ave": {"pooling": "average"},
        "hn-max": {"pooling": "maximum"},
    }

    vocabulary_size: int
    classes: int
    embedding_size: int = 200
    hidden_size: int = 50  # of each direction, at both levels
    attention_size: int = 100  # of u
    pooling: str = "attention"  # last: the states at the ends of the two directions
    word_dropout: float = 0.0  # whole words; not in the paper, and neither is
    dropout: float = 0.0  # of word, sentence and document vectors
    init_range: float | None = None  # the words' vectors start within ±; None: normal

    def __post_init__(self) -> None:
        check_at_least(1, self, "vocabulary_size", "classes", "embedding_size", "hidden_size")
        check_at_least(1, self, "attention_size")
        check_one_of(POOLINGS, self, "pooling")
        check_rates(self, "word_dropout", "dropout")
        check_above_zero(self, "init_range")


class HAN(nn.Module):
    """Words → sentence vectors → a document vector → a class."""

    reads = LabelledDocuments

    def __init__(self, config: HANConfig):
        super().__init__()
        self.config = config
        self.embedding = Embedding(config.vocabulary_size, config.embedding_size)
        if config.init_range is not None:
            nn.init.uniform_(self.embedding.weight, -config.init_range, config.init_range)
        self.words = Level(config, config.embedding_size, ("sentence", "words"))
        self.sentences = Level(config, 2 * config.hidden_size, ("document", "sentences"))
        self.word_dropout = Dropout(config.word_dropout)
        self.dropout = Dropout(config.dropout)
        self.output = Linear(2 * config.hidden_size, config.classes)

    def forward(self, batch: LabelledDocuments) -> Tensor:
        real = batch.sentence_mask  # (batch, sentence)
        vectors = self.read_sentences(batch.ids[real], batch.mask[real])  # (real sentence, size)
        sentences = vectors.new_zeros(*real.shape, vectors.shape[-1])
        sentences[real] = vectors  # (batch, sentence, size), zeros where there is none
        documents = self.sentences(self.dropout(sentences), real)  # (batch, size)
        return self.output(self.dropout(documents))  # (batch, class)

    def read_sentences(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(sentence, word) ids → (sentence, size).

        In training those of like length go together: padded to the longest, most of the work would
        be padding. Else all go at once, in their order, so that whoever watches finds them there;
        without a gradient to compute, the recurrent kernel passes padding over.
        """
        if not self.training:
            return self.read_words(ids, mask)
        lengths = mask.sum(dim=1)
        found = [self.output.weight.new_zeros(0, self.output.in_features)]
        order = [lengths[:0]]
        for rows in group_by_length(lengths):
            longest = int(lengths[rows[-1]])
            found.append(self.read_words(ids[rows, :longest], mask[rows, :longest]))
            order.append(rows)
        return torch.cat(found)[torch.cat(order).argsort()]

    def read_words(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(sentence, word) ids → (sentence, size)."""
        kept = self.word_dropout(mask.to(self.embedding.weight.dtype)).unsqueeze(-1)
        return self.words(self.dropout(self.embedding(ids) * kept), mask)


class Level(nn.Module):
    """One level of the hierarchy: vectors in their order, pooled into one.

    (batch, position, input) → (batch, 2 · hidden); a row without positions comes to zeros.
    """

    def __init__(self, config: HANConfig, input_size: int, sides: tuple[str, str]):
        super().__init__()
        self.pooling = config.pooling
        self.encoder = Recurrent("gru", input_size, config.hidden_size, bidirectional=True)
        if config.pooling == "attention":
            self.projection = Linear(self.encoder.output_size, config.attention_size)
            self.context = nn.Parameter(torch.empty(config.attention_size))
            # Not too small, or all weights stay near the mean's and there is little to see; not
            # too large: drawn from N(0, 1) it soon reads one word alone, the first or last, behind
            # which a bidirectional GRU has the whole sentence.
            nn.init.uniform_(self.context, -0.5, 0.5)
            self.attention = Attention(Dot(), sides=sides)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        states, end = self.encoder(vectors, mask.sum(dim=1))  # (batch, position, size)
        match self.pooling:
            case "attention":
                return self.attend(states, mask)
            case "average":
                return mean_of_words(states, mask)
            case "maximum":
                return maximum_of_words(states, mask)
        return torch.cat(list(end.hidden), dim=-1)  # both directions (batch, hidden) side by side

    def attend(self, states: Tensor, mask: Tensor) -> Tensor:
        """Σ α h with α = softmax(tanh(W h + b)ᵀ u), over the positions that are real."""
        keys = torch.tanh(self.projection(states))  # (batch, position, attention)
        query = self.context.expand(len(states), 1, -1)
        return self.attention(query, keys, states, mask.unsqueeze(1)).context.squeeze(1)


def group_by_length(lengths: Tensor) -> list[Tensor]:
    """Rows in groups of like length, the short ones first: numbers of rows, each once."""
    order = lengths.argsort(stable=True)
    begins: list[int] = []
    shortest = 0
    for at, length in enumerate(lengths[order].tolist()):
        if at == 0 or length > shortest * SPREAD + SLACK:
            begins.append(at)
            shortest = length
    return [order[begin:end] for begin, end in pairwise([*begins, len(order)])]
