"""Translate by looking back at the source after each step of the decoder.

h_t = stacked LSTM([E y_{t−1}; h̃_{t−1}])           input feeding: what was decided is read again
a_t = align(h_t, h̄)                                 by the state of *this* word
c_t = Σ_s a_t(s) h̄_s
h̃_t = tanh(W_c [c_t; h_t])                          the attentional vector
p(y_t) = softmax(W_s h̃_t)

Since the state looks after it has moved, nothing of the attention need enter the recurrence.
Without input feeding the decoder then runs over the whole target at once, and all its states look
in one call.

Luong, Pham & Manning (2015), "Effective approaches to attention-based neural machine translation",
section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from regard.attention import (
    Additive,
    Attention,
    Dot,
    General,
    Hard,
    LocalMonotonic,
    LocalPredictive,
    Location,
    Score,
    Softmax,
    Weighing,
)
from regard.data.batches import Pairs
from regard.layers import Dropout, Embedding, Recurrent, RecurrentState
from regard.models.checks import check_at_least, check_one_of, check_rates, check_shared, check_tied
from regard.models.source import Source, StackedEncoder, share_table
from regard.products import Linear

SCORES = ("dot", "general", "concat", "location")
SCOPES = ("global", "local-m", "local-p", "hard")


@dataclass(frozen=True, kw_only=True)
class LuongConfig:
    """Luong et al. (2015), section 4.1. The defaults are its best single model, *local-p general*
    with input feeding.

    `scope` says which words are looked at: all of them (global), a window that marches along
    (local-m) or is placed by the state (local-p), or a single word drawn by chance (hard).
    The presets are the rows of table 4, and small: for some ten thousand pairs.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "global-location": {"scope": "global", "score": "location"},
        "global-dot": {"scope": "global", "score": "dot"},
        "global-general": {"scope": "global", "score": "general"},
        "local-m-dot": {"scope": "local-m", "score": "dot"},
        "local-m-general": {"scope": "local-m", "score": "general"},
        "local-p-dot": {"scope": "local-p", "score": "dot"},
        "local-p-general": {"scope": "local-p", "score": "general"},
        "small": {
            "embedding_size": 256,
            "hidden_size": 256,
            "layers": 2,
            "scope": "global",
            "tied": True,
            "shared": True,
            "dropout": 0.3,
        },
    }

    vocabulary_size: int  # of the target
    source_vocabulary_size: int | None = None  # None: the target's
    embedding_size: int = 1000
    hidden_size: int = 1000
    layers: int = 4
    score: str = "general"  # or "dot", "concat", "location"
    scope: str = "local-p"  # or "global", "local-m", "hard"
    reach: int = 10  # local scopes: the window is [p − reach, p + reach]
    longest: int = 100  # location: source positions it knows
    expected_share: float = 0.5  # hard: how often, in training, the mean is read instead of a draw
    input_feeding: bool = True  # what was decided is read with the next word
    reverse: bool = True  # read the source backward; positions stay those of the words
    tied: bool = False  # the output layer reads the embedding's table
    shared: bool = False  # words of source and target have one table, for units they have in common
    dropout: float = 0.2  # of words' vectors, between layers and before the output

    def __post_init__(self) -> None:
        check_at_least(1, self, "vocabulary_size", "source_vocabulary_size", "embedding_size")
        check_at_least(1, self, "hidden_size", "layers", "reach", "longest")
        check_one_of(SCORES, self, "score")
        check_one_of(SCOPES, self, "scope")
        check_rates(self, "dropout", "expected_share")
        check_tied(self, "hidden_size", "embedding_size")
        check_shared(self)


@dataclass(frozen=True)
class LuongState:
    """Where the decoder stands, what it decided last, and the source it looks at."""

    recurrent: RecurrentState  # (layer, batch, hidden)
    attentional: Tensor  # h̃, (batch, hidden)
    source: Source
    carried: Any = None  # what the weighing brings along: local-m counts the steps

    def pick(self, rows: Tensor) -> LuongState:
        return replace(
            self,
            recurrent=self.recurrent.pick(rows),
            attentional=self.attentional.index_select(0, rows),
            source=self.source.pick(rows),
        )

    def detach(self) -> LuongState:
        return replace(
            self,
            recurrent=self.recurrent.detach(),
            attentional=self.attentional.detach(),
            source=self.source.detach(),
        )


class Luong(nn.Module):
    """Read the source once, then look back at it from every state of the decoder."""

    carries = False

    def __init__(self, config: LuongConfig):
        super().__init__()
        self.config = config
        size = config.source_vocabulary_size or config.vocabulary_size
        sizes = (config.embedding_size, config.hidden_size, config.layers)
        scaled = config.tied and config.shared  # as the decoder's, whose table it then has
        self.encoder = StackedEncoder(size, *sizes, config.reverse, config.dropout, scaled=scaled)
        self.decoder = Decoder(config)
        self.output = Linear(config.hidden_size, config.vocabulary_size, bias=False)
        share_table(config, self.decoder.embedding, self.output, self.encoder.embedding)

    def forward(self, batch: Pairs) -> Tensor:
        return self.output(self.features(batch)[0])  # (batch, target, vocabulary)

    def features(self, batch: Pairs, state: None = None) -> tuple[Tensor, None]:
        """What the output layer reads, (batch, target, hidden)."""
        words = self.decoder.embed(batch.target_input)  # (batch, target, embedding)
        current = self.start(batch)
        if not self.config.input_feeding:
            return self.decoder(words, batch.target_mask.sum(dim=1), current), None
        attentional = []
        for word in words.unbind(dim=1):  # teacher forcing, one (batch, embedding) at a time
            current = self.decoder.step(word, current)
            attentional.append(current.attentional)
        return self.decoder.dropout(torch.stack(attentional, dim=1)), None

    def start(self, batch: Pairs) -> LuongState:
        """The state before the first word: the decoder goes on where the encoder ended."""
        lengths = batch.source_mask.sum(dim=1)
        memory, ends = self.encoder(batch.source, lengths)
        source = Source.prepare(memory, lengths, self.decoder.attention)
        return LuongState(ends, memory.new_zeros(len(memory), self.config.hidden_size), source)

    def step(self, ids: Tensor, state: LuongState) -> tuple[Tensor, LuongState]:
        """Last words (batch,) → logits of the next (batch, vocabulary), and the state after."""
        state = self.decoder.step(self.decoder.embed(ids), state)
        return self.output(self.decoder.dropout(state.attentional)), state


class Decoder(nn.Module):
    """Move, look, then say: the state of a word decides where to look for it."""

    def __init__(self, config: LuongConfig):
        super().__init__()
        self.input_feeding = config.input_feeding
        # A scaled table has the small numbers that an output layer starts with.
        self.embedding = Embedding(
            config.vocabulary_size, config.embedding_size, scaled=config.tied
        )
        self.dropout = Dropout(config.dropout)
        fed_size = config.hidden_size if config.input_feeding else 0
        self.recurrent = Recurrent(
            "lstm",
            config.embedding_size + fed_size,
            config.hidden_size,
            config.layers,
            dropout=config.dropout,
        )
        self.attention = Attention(
            make_score(config), make_weighing(config), sides=("target", "source")
        )
        self.combine = Linear(2 * config.hidden_size, config.hidden_size, bias=False)

    def embed(self, ids: Tensor) -> Tensor:
        """(…) → (…, embedding)"""
        return self.dropout(self.embedding(ids))

    def forward(self, words: Tensor, lengths: Tensor, state: LuongState) -> Tensor:
        """All words at once, without input feeding: (batch, target, embedding) → (…, hidden)"""
        hidden, _ = self.recurrent(words, lengths, state.recurrent)
        return self.dropout(self._look(hidden, state)[0])

    def step(self, word: Tensor, state: LuongState) -> LuongState:
        """The state after a word (batch, embedding)."""
        fed = torch.cat([word, state.attentional], dim=-1) if self.input_feeding else word
        hidden, recurrent = self.recurrent.step(fed, state.recurrent)
        attentional, carried = self._look(hidden.unsqueeze(1), state)
        return replace(
            state, recurrent=recurrent, attentional=attentional.squeeze(1), carried=carried
        )

    def _look(self, hidden: Tensor, state: LuongState) -> tuple[Tensor, Any]:
        """h̃ of these states, (batch, target, hidden), and what the weighing carries on."""
        source = state.source
        read = self.attention(hidden, source.keys, source.memory, source.mask, state.carried)
        return self.combine(torch.cat([read.context, hidden], dim=-1)).tanh(), read.carried


def make_score(config: LuongConfig) -> Score:
    """How well a word of the source answers a state, equations 7 and 8."""
    size = config.hidden_size
    if config.score == "concat":
        return Additive(size, size, size)
    if config.score == "location":
        return Location(size, config.longest)
    return General(size, size) if config.score == "general" else Dot()


def make_weighing(config: LuongConfig) -> Weighing:
    """Which words are looked at, section 3.2; a single one as in Xu et al. (2015)."""
    if config.scope == "local-m":
        return LocalMonotonic(config.reach)
    if config.scope == "local-p":
        return LocalPredictive(config.hidden_size, reach=config.reach)
    return Hard(expected_share=config.expected_share) if config.scope == "hard" else Softmax()
