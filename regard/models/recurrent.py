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
from regard.models.checks import at_least, one_of, shares
from regard.models.padding import Laid


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig:
    """Zaremba et al. (2014), section 4.1. The defaults are the small one, which has no dropout.

    medium: hidden_size 650, dropout 0.5, init_range 0.05
    large:  hidden_size 1500, dropout 0.65, init_range 0.04
    """

    vocabulary_size: int
    kind: str = "lstm"
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
        one_of(("rnn", "lstm", "gru"), self, "kind")
        at_least(1, self, "vocabulary_size", "layers", "hidden_size", "embedding_size")
        shares(self, "dropout", "input_dropout", "output_dropout", "word_dropout", "weight_dropout")
        if self.init_range is not None and self.init_range <= 0:
            raise ValueError(f"init_range ({self.init_range}) must be above 0")

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
        self.narrow = nn.Linear(config.hidden_size, features_size) if narrow else nn.Identity()
        self.dropout = dropping(config, config.output_dropout)
        self.output = nn.Linear(features_size, config.vocabulary_size)
        settle(self, config)

    def forward(self, batch: Words) -> Tensor:
        return self.output(self.features(batch)[0])  # (batch, position, vocabulary)

    def features(
        self, batch: Words, state: RecurrentState | None = None
    ) -> tuple[Tensor, RecurrentState | None]:
        """What the output layer reads, (batch, position, features), and the state at the end."""
        laid = Laid.of(batch)
        states, state = self.reader(laid, state)  # (batch, position, hidden)
        return laid.back(self.dropout(self.narrow(states))), state

    def start(self, batch: Words) -> RecurrentState:
        _, state = self.reader(Laid.of(batch), None)
        return state

    def step(self, ids: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """Last words (batch,) → logits of the next (batch, vocabulary), and the state after."""
        hidden, state = self.reader.step(ids, state)
        return self.output(self.narrow(hidden)), state


class Reader(nn.Module):
    """Words in, a state for each of them out."""

    def __init__(self, config: RecurrentConfig):
        super().__init__()
        self.embedding = Embedding(config.vocabulary_size, config.word_size)
        self.word_dropout = Dropout(config.word_dropout)
        self.dropout = dropping(config, config.input_dropout)
        self.recurrent = Recurrent(config.kind, config.word_size, config.hidden_size, config.layers)
        self.recurrent.dropout = dropping(config, config.dropout)  # what acts between its layers
        self.weight_dropout = Dropout(config.weight_dropout)

    def forward(self, laid: Laid, state: RecurrentState | None) -> tuple[Tensor, RecurrentState]:
        """(batch, position) → (batch, position, hidden), and the state behind the last word."""
        vectors = self.dropout(self._known(self.embedding(laid.ids), laid.ids))
        heard = (vectors, laid.lengths, state)
        if self.training and self.weight_dropout.rate:
            return functional_call(self.recurrent, self._thinned(), heard)
        return self.recurrent(*heard)

    def step(self, ids: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """One word (batch,) → (batch, hidden), and the state behind it."""
        return self.recurrent.step(self.embedding(ids), state)

    def _known(self, vectors: Tensor, ids: Tensor) -> Tensor:
        """The vectors, but for words that are dropped: those are zero wherever they stand."""
        if not (self.training and self.word_dropout.rate):
            return vectors
        table = self.embedding.weight
        kept = self.word_dropout(torch.ones_like(table[:, :1]))  # (vocabulary, 1)
        return vectors * kept.detach()[ids]

    def _thinned(self) -> dict[str, Tensor]:
        """Recurrent weights with some of them dropped, by their names."""
        weights = self.recurrent.named_parameters()
        return {n: self.weight_dropout(w) for n, w in weights if n.endswith("weight_hh")}


class Locked(nn.Module):
    """Dropout with one throw of the dice for all positions: y_t = x_t ⊙ m

    Gal & Ghahramani (2016), "A theoretically grounded application of dropout in recurrent neural
    networks", section 4.
    """

    def __init__(self, rate: float):
        super().__init__()
        self.dice = Dropout(rate)

    def forward(self, vectors: Tensor) -> Tensor:
        """(batch, position, size) → the same."""
        if not self.training or self.dice.rate == 0.0:
            return vectors
        return vectors * self.dice(torch.ones_like(vectors[:, :1]))


def dropping(config: RecurrentConfig, rate: float | None) -> Any:
    """The dropout a config asks for, at its own rate or at the common one."""
    rate = config.dropout if rate is None else rate
    return Locked(rate) if config.locked else Dropout(rate)


def settle(model: Any, config: RecurrentConfig) -> None:
    """Tie the two ends of a model if asked to, and start its weights where the paper does."""
    if config.tied:
        model.output.weight = model.reader.embedding.weight
    if config.init_range is not None:
        for weight in model.parameters():
            nn.init.uniform_(weight, -config.init_range, config.init_range)
