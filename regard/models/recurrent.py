"""A recurrent language model: RNN, LSTM or GRU.

h_t = cell(e(w_t), h_{t−1}),  p(w_{t+1}) = softmax(W h_t + b)

All that was said so far is one vector, carried from word to word and from batch to batch. Dropout
on the way up, never on the way through time, lets such a model be large: Zaremba, Sutskever &
Vinyals (2014), "Recurrent neural network regularization", figure 2.

What later papers added, each off by default: one table for reading and writing, Press & Wolf
(2017); a mask that stays the same through time, and whole words dropped, Gal & Ghahramani (2016),
sections 4 and 4.2; dropped recurrent weights, Merity, Keskar & Socher (2018), section 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from regard.data.batches import Words
from regard.layers import Dropout, Embedding, Recurrent, RecurrentState
from regard.models.checks import check_above_zero, check_at_least, check_one_of, check_rates
from regard.models.padding import LeftAligned
from regard.products import Linear


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig:
    """Zaremba et al. (2014), section 4.1. The defaults are the small one, which has no dropout.

    medium: hidden_size 650, dropout 0.5, init_range 0.05
    large:  hidden_size 1500, dropout 0.65, init_range 0.04
    """

    vocabulary_size: int
    kind: str = "lstm"  # or "rnn", "rnn-relu", "gru"
    layers: int = 2
    hidden_size: int = 200
    embedding_size: int | None = None  # None: the hidden size
    tied: bool = False  # the output layer reads the embedding's table
    init_range: float | None = 0.1  # all weights start within ±; None: each layer's own way
    dropout: float = 0.0  # between layers, and wherever the next two are None
    input_dropout: float | None = None  # of the words' vectors
    output_dropout: float | None = None  # of what the output layer reads
    locked: bool = False  # what is dropped stays dropped for the whole segment
    word_dropout: float = 0.0  # of words, wherever in the segment they stand
    weight_dropout: float = 0.0  # of the recurrent weights

    def __post_init__(self) -> None:
        check_one_of(("rnn", "lstm", "gru"), self, "kind")
        check_at_least(1, self, "vocabulary_size", "layers", "hidden_size", "embedding_size")
        check_rates(self, "dropout", "input_dropout", "output_dropout")
        check_rates(self, "word_dropout", "weight_dropout")
        check_above_zero(self, "init_range")

    @property
    def word_size(self) -> int:
        """The size of a word's vector."""
        return self.hidden_size if self.embedding_size is None else self.embedding_size


class RecurrentLM(nn.Module):
    """Read word by word, and at each one predict the next from the state."""

    carries = True

    def __init__(self, config: RecurrentConfig):
        super().__init__()
        self.config = config
        self.reader = Reader(config)
        features_size = config.word_size if config.tied else config.hidden_size
        narrow = features_size != config.hidden_size
        self.narrow = Linear(config.hidden_size, features_size) if narrow else nn.Identity()
        self.dropout = make_dropout(config, config.output_dropout)
        self.output = Linear(features_size, config.vocabulary_size)
        tie_and_initialise(self, config)

    def forward(self, batch: Words) -> Tensor:
        return self.output(self.features(batch)[0])  # (batch, position, vocabulary)

    def features(
        self, batch: Words, state: RecurrentState | None = None
    ) -> tuple[Tensor, RecurrentState | None]:
        """What the output layer reads, (batch, position, features), and the state at the end."""
        aligned = LeftAligned.from_batch(batch)
        states, state = self.reader(aligned, state)  # (batch, position, hidden)
        return aligned.restore(self.dropout(self.narrow(states))), state

    def start(self, batch: Words) -> RecurrentState:
        _, state = self.reader(LeftAligned.from_batch(batch), None)
        return state

    def step(self, ids: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """Last words (batch,) → logits of the next (batch, vocabulary), and the state after."""
        hidden, state = self.reader.step(ids, state)
        return self.output(self.narrow(hidden)), state


class Reader(nn.Module):
    """Embedding and recurrent network: words in, a hidden state for each of them out."""

    def __init__(self, config: RecurrentConfig):
        super().__init__()
        self.embedding = Embedding(config.vocabulary_size, config.word_size)
        self.word_dropout = Dropout(config.word_dropout)
        self.dropout = make_dropout(config, config.input_dropout)
        self.recurrent = Recurrent(config.kind, config.word_size, config.hidden_size, config.layers)
        self.recurrent.dropout = make_dropout(config, config.dropout)  # acts between its layers
        self.weight_dropout = Dropout(config.weight_dropout)

    def forward(
        self, aligned: LeftAligned, state: RecurrentState | None
    ) -> tuple[Tensor, RecurrentState]:
        """(batch, position) → (batch, position, hidden), and the state behind the last word."""
        vectors = self.dropout(self._drop_words(self.embedding(aligned.ids), aligned.ids))
        inputs = (vectors, aligned.lengths, state)
        if self.training and self.weight_dropout.rate:
            return functional_call(self.recurrent, self._drop_recurrent_weights(), inputs)
        return self.recurrent(*inputs)

    def step(self, ids: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """One word (batch,) → (batch, hidden), and the state behind it."""
        return self.recurrent.step(self.embedding(ids), state)

    def _drop_words(self, vectors: Tensor, ids: Tensor) -> Tensor:
        """Word dropout: the vectors of dropped words are zero wherever those words stand."""
        if not (self.training and self.word_dropout.rate):
            return vectors
        table = self.embedding.weight
        factors = self.word_dropout(torch.ones_like(table[:, :1]))  # (vocabulary, 1)
        return vectors * factors.detach()[ids]

    def _drop_recurrent_weights(self) -> dict[str, Tensor]:
        """Recurrent weights with some of them dropped, by their names."""
        weights = self.recurrent.named_parameters()
        return {n: self.weight_dropout(w) for n, w in weights if n.endswith("weight_hh")}


class LockedDropout(nn.Module):
    """Variational (locked) dropout, with one mask for all positions: y_t = x_t ⊙ m

    Gal & Ghahramani (2016), "A theoretically grounded application of dropout in recurrent neural
    networks", section 4.
    """

    def __init__(self, rate: float):
        super().__init__()
        self.dropout = Dropout(rate)

    def forward(self, vectors: Tensor) -> Tensor:
        """(batch, position, size) → the same."""
        if not self.training or self.dropout.rate == 0.0:
            return vectors
        return vectors * self.dropout(torch.ones_like(vectors[:, :1]))


def make_dropout(config: RecurrentConfig, rate: float | None) -> Any:
    """The dropout a config asks for, at its own rate or at the common one."""
    rate = config.dropout if rate is None else rate
    return LockedDropout(rate) if config.locked else Dropout(rate)


def tie_and_initialise(model: Any, config: RecurrentConfig) -> None:
    """Tie output and embedding weights if `tied`; initialise all weights in ±init_range."""
    if config.tied:
        model.output.weight = model.reader.embedding.weight
    if config.init_range is not None:
        for weight in model.parameters():
            nn.init.uniform_(weight, -config.init_range, config.init_range)
