"""Translate by looking back at the source before each word.

h_j = [forward GRU; backward GRU]                  an annotation of each source word
e_ij = vᵀ tanh(W s_{i−1} + U h_j),  α = softmax(e) where the state before would look
c_i = Σ_j α_ij h_j                                 what it reads there
s_i = GRU([E y_{i−1}; c_i], s_{i−1})
p(y_i) = softmax(W_o maxout(s_i, E y_{i−1}, c_i))

A whole sentence need not be pressed into one vector: the decoder keeps all annotations in reach and
finds for itself which belong to the word it is about to say. The alignment is learned on the way.

Bahdanau, Cho & Bengio (2015), "Neural machine translation by jointly learning to align and
translate", section 3 and appendix A.2. The state that predicts is s_i as in section 3.1, equation
4 (the appendix writes s_{i−1}); the reset gate is torch's, see `GRUCell`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from regard.attention import Additive, Attention
from regard.data.batches import Pairs
from regard.layers import Dropout, Embedding, GRUCell, Recurrent, RecurrentState
from regard.layers.attentive import can_run_attentive, run_attentive
from regard.models.checks import check_at_least, check_rates, check_shared, check_tied
from regard.models.source import Source, share_table
from regard.products import Linear


@dataclass(frozen=True, kw_only=True)
class BahdanauConfig:
    """Bahdanau et al. (2015), section 4.2 and appendix A.2.3. The defaults are its RNNsearch.

    small: for some ten thousand pairs; one table for source, target and output, and dropout
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "rnnsearch": {},
        "small": {
            "embedding_size": 256,
            "hidden_size": 256,
            "attention_size": 256,
            "readout_size": 256,
            "tied": True,
            "shared": True,
            "dropout": 0.3,
        },
    }

    vocabulary_size: int  # of the target
    source_vocabulary_size: int | None = None  # None: the target's
    embedding_size: int = 620
    hidden_size: int = 1000  # of the decoder, and of the encoder in each direction
    attention_size: int = 1000
    readout_size: int = 500
    tied: bool = False  # the output layer reads the embedding's table
    shared: bool = False  # words of source and target have one table, for units they have in common
    dropout: float = 0.0  # of words' vectors, annotations and readout; not in the paper

    def __post_init__(self) -> None:
        check_at_least(1, self, "vocabulary_size", "source_vocabulary_size", "embedding_size")
        check_at_least(1, self, "hidden_size", "attention_size", "readout_size")
        check_rates(self, "dropout")
        check_tied(self, "readout_size", "embedding_size")
        check_shared(self)


@dataclass(frozen=True)
class BahdanauState:
    """The decoder's state, and the source as it keeps looking at it."""

    hidden: Tensor  # (batch, hidden)
    source: Source  # its memory is (batch, source, 2 × hidden)

    def pick(self, rows: Tensor) -> BahdanauState:
        return BahdanauState(self.hidden.index_select(0, rows), self.source.pick(rows))

    def detach(self) -> BahdanauState:
        return BahdanauState(self.hidden.detach(), self.source.detach())


class Bahdanau(nn.Module):
    """Read the source once, then look back at all of it before saying each word."""

    carries = False

    def __init__(self, config: BahdanauConfig):
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.output = Linear(config.readout_size, config.vocabulary_size)
        share_table(config, self.decoder.embedding, self.output, self.encoder.embedding)

    def forward(self, batch: Pairs) -> Tensor:
        return self.output(self.features(batch)[0])  # (batch, target, vocabulary)

    def features(self, batch: Pairs, state: None = None) -> tuple[Tensor, None]:
        """What the output layer reads, (batch, target, readout)."""
        vectors = self.decoder.embed(batch.target_input)  # (batch, target, embedding)
        lengths = batch.target_mask.sum(dim=1)
        states, contexts = self.decoder(vectors, lengths, self.start(batch))
        return self.decoder.readout(states, vectors, contexts), None

    def start(self, batch: Pairs) -> BahdanauState:
        """The state before the first word, from the source alone."""
        lengths = batch.source_mask.sum(dim=1)
        memory, first = self.encoder(batch.source, lengths)
        return self.decoder.start(memory, first, lengths)

    def step(self, ids: Tensor, state: BahdanauState) -> tuple[Tensor, BahdanauState]:
        """Last words (batch,) → logits of the next (batch, vocabulary), and the state after."""
        word = self.decoder.embed(ids)  # (batch, embedding)
        context, state = self.decoder.step(word, state)
        return self.output(self.decoder.readout(state.hidden, word, context)), state


class Encoder(nn.Module):
    """An annotation of each word that knows what stands on either side."""

    def __init__(self, config: BahdanauConfig):
        super().__init__()
        size = config.source_vocabulary_size or config.vocabulary_size
        scaled = config.tied and config.shared  # as the decoder's, whose table it then has
        self.embedding = Embedding(size, config.embedding_size, scaled=scaled)
        self.dropout = Dropout(config.dropout)
        self.recurrent = Recurrent(
            "gru", config.embedding_size, config.hidden_size, bidirectional=True
        )

    def forward(self, ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, source) → (batch, source, 2 × hidden), and the backward state at the first word,
        (batch, hidden), which has read everything."""
        memory, ends = self.recurrent(self.dropout(self.embedding(ids)), lengths)
        return self.dropout(memory), ends.hidden[1]


class Decoder(nn.Module):
    """Look, then say: the state before decides where to look for the next word."""

    def __init__(self, config: BahdanauConfig):
        super().__init__()
        memory_size = 2 * config.hidden_size
        # A scaled table has the small numbers that an output layer starts with.
        self.embedding = Embedding(
            config.vocabulary_size, config.embedding_size, scaled=config.tied
        )
        self.dropout = Dropout(config.dropout)
        self.first = Linear(config.hidden_size, config.hidden_size)
        score = Additive(config.hidden_size, memory_size, config.attention_size)
        self.attention = Attention(score, sides=("target", "source"))
        self.cell = GRUCell(config.embedding_size + memory_size, config.hidden_size)
        readout_input_size = config.hidden_size + config.embedding_size + memory_size
        self.pieces = Linear(readout_input_size, 2 * config.readout_size)

    def embed(self, ids: Tensor) -> Tensor:
        """(…) → (…, embedding)"""
        return self.dropout(self.embedding(ids))

    def start(self, memory: Tensor, first: Tensor, lengths: Tensor) -> BahdanauState:
        """s_0 = tanh(W_s ←h_1), and the keys of the memory, made once for all steps."""
        hidden = self.first(first).tanh()  # (batch, hidden)
        return BahdanauState(hidden, Source.prepare(memory, lengths, self.attention))

    def forward(
        self, words: Tensor, lengths: Tensor, state: BahdanauState
    ) -> tuple[Tensor, Tensor]:
        """Teacher forcing: right words (batch, target, embedding) → states (…, hidden) and what was
        read for them (…, memory)."""
        source = state.source
        if can_run_attentive(self.attention, self.cell, source.mask.lengths):
            looked_at = (source.memory, source.keys, source.mask.lengths)
            return run_attentive(
                self.attention, self.cell, words, lengths, state.hidden, *looked_at
            )
        steps = []
        for word in words.unbind(dim=1):  # one (batch, embedding) at a time
            context, state = self.step(word, state)
            steps.append((state.hidden, context))
        states, contexts = (torch.stack(part, dim=1) for part in zip(*steps, strict=True))
        return states, contexts

    def step(self, word: Tensor, state: BahdanauState) -> tuple[Tensor, BahdanauState]:
        """A word (batch, embedding) → what was read for it (batch, memory), the state after."""
        query, source = state.hidden.unsqueeze(-2), state.source  # (batch, 1, hidden)
        attended = self.attention(query, source.keys, source.memory, source.mask)
        context = attended.context.squeeze(-2)  # (batch, memory)
        inputs = torch.cat([word, context], dim=-1)
        hidden, _ = self.cell(inputs, RecurrentState(state.hidden))
        return context, replace(state, hidden=hidden)

    def readout(self, states: Tensor, words: Tensor, contexts: Tensor) -> Tensor:
        """maxout(s, E y, c): of each pair of pieces, the larger; (…, readout)."""
        one, other = self.pieces(torch.cat([states, words, contexts], dim=-1)).chunk(2, dim=-1)
        return self.dropout(torch.maximum(one, other))
