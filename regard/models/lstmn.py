"""A long short-term memory-network: an LSTM that keeps all it has read, and looks before it reads.

a_iᵗ = vᵀ tanh(W_h h_i + W_x x_t + W_h̃ h̃_{t−1})    how well each earlier word suits this one
sᵗ = softmax(aᵗ)
[h̃_t; c̃_t] = Σ_{i<t} s_iᵗ [h_i; c_i]                one set of weights mixes both tapes
i, f, o, ĉ = σ, σ, σ, tanh (W [h̃_t; x_t])
c_t = f ⊙ c̃_t + i ⊙ ĉ,  h_t = o ⊙ tanh(c_t)

An LSTM hands on one state, in which everything so far is pressed together. Here every word has its
own place on two tapes, of hidden states and of memories, and the state before a word is read from
them. The score also sees what was read last, h̃_{t−1}, so that a sentence can only be read word by
word. The first word finds the tapes empty and reads zeros; a sentence begins with empty tapes.

Cheng, Dong & Lapata (2016), "Long short-term memory-networks for machine reading", section 3.1.
Stacked layers read the hidden states of the layer below; the paper's skip connections are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from regard.attention import Additive, Attention, Padding, PreparedMemory
from regard.data.batches import LabelledTexts, Words
from regard.layers import Dropout, Embedding, LSTMCell, RecurrentState
from regard.layers.pooling import mean_of_words
from regard.models.checks import check_above_zero, check_at_least, check_classes, check_rates
from regard.models.padding import lengths_from_first_word, refuse_packed
from regard.products import Linear

SCORE_RANGE, DIRECTION_RANGE = 0.3, 1.0
"""Matrices and v of the score start within ±. With smaller ones all words score alike, the mean of
the tapes is read, and for hundreds of steps nothing says where to look."""


@dataclass(frozen=True, kw_only=True)
class LSTMNConfig:
    """Cheng et al. (2016), section 5.1. The defaults are the language model of one layer."""

    vocabulary_size: int
    classes: int | None = None  # of a classifier; a language model has none
    embedding_size: int = 150
    hidden_size: int = 300
    attention_size: int | None = None  # of the score's hidden layer; None: the hidden size
    layers: int = 1
    dropout: float = 0.0  # of the words' vectors, between layers, and of what is read at the end
    init_range: float | None = 0.1  # all but the score start within ±; None: each its own way

    def __post_init__(self) -> None:
        check_at_least(1, self, "vocabulary_size", "classes", "embedding_size", "hidden_size")
        check_at_least(1, self, "attention_size", "layers")
        check_rates(self, "dropout")
        check_above_zero(self, "init_range")


class Tape(NamedTuple):
    """What one layer has kept of the words so far, and what it read from there last."""

    memory: PreparedMemory  # keys W_h h_i (batch, word, attention), values [h_i; c_i]
    mixed: Tensor  # (batch, hidden), h̃ of the last word

    def pick(self, rows: Tensor) -> Tape:
        return Tape(self.memory.pick(rows), self.mixed.index_select(0, rows))

    def detach(self) -> Tape:
        return Tape(self.memory.detach(), self.mixed.detach())


class LSTMNState(NamedTuple):
    """The tapes of all layers; rows of them end together."""

    tapes: tuple[Tape, ...]
    lengths: Tensor | None = None  # (batch,), how many words of each row are real; None: all

    def pick(self, rows: Tensor) -> LSTMNState:
        lengths = None if self.lengths is None else self.lengths.index_select(0, rows)
        return LSTMNState(tuple(tape.pick(rows) for tape in self.tapes), lengths)

    def detach(self) -> LSTMNState:
        return self._replace(tapes=tuple(tape.detach() for tape in self.tapes))


class LSTMN(nn.Module):
    """Words in, a hidden state for each of them out: what language model and classifier share."""

    def __init__(self, config: LSTMNConfig):
        super().__init__()
        self.config = config
        self.embedding = Embedding(config.vocabulary_size, config.embedding_size)
        self.dropout = Dropout(config.dropout)
        below = [config.embedding_size] + [config.hidden_size] * (config.layers - 1)
        self.layers = nn.ModuleList(LSTMNLayer(size, config) for size in below)

    def initial_state(self, batch_size: int) -> LSTMNState:
        """Empty tapes."""
        layers = cast(Iterable[LSTMNLayer], self.layers)
        return LSTMNState(tuple(layer.start(batch_size) for layer in layers))

    def read(
        self, ids: Tensor, state: LSTMNState, lengths: Tensor | None = None
    ) -> tuple[Tensor, LSTMNState]:
        """(batch, position) → (batch, position, hidden), and the state behind the last word.

        `lengths` counts the real words of each row when these are read, the state's among them.
        """
        vectors, tapes = self.dropout(self.embedding(ids)), []
        for layer, tape in zip(self.layers, state.tapes, strict=True):
            vectors, tape = layer(vectors, tape, lengths)
            vectors = self.dropout(vectors)
            tapes.append(tape)
        return vectors, LSTMNState(tuple(tapes), lengths)

    def _initialise(self) -> None:
        if self.config.init_range is not None:
            for weight in self.parameters():
                nn.init.uniform_(weight, -self.config.init_range, self.config.init_range)
        for layer in cast(Iterable[LSTMNLayer], self.layers):
            layer.initialise_score()


class LSTMNLM(LSTMN):
    """Read word by word, and at each one predict the next from its hidden state."""

    carries = False  # a tape as long as the corpus would be another model

    def __init__(self, config: LSTMNConfig):
        super().__init__(config)
        self.output = Linear(config.hidden_size, config.vocabulary_size)
        self._initialise()

    def forward(self, batch: Words) -> Tensor:
        return self.output(self.features(batch)[0])  # (batch, position, vocabulary)

    def features(
        self, batch: Words, state: LSTMNState | None = None
    ) -> tuple[Tensor, LSTMNState | None]:
        """What the output layer reads, (batch, position, hidden), and the state at the end."""
        refuse_packed(batch)
        if state is None:
            state = self.initial_state(len(batch))
            # Padding on the right comes after all words, and none of them looks ahead.
            return self.read(batch.inputs, state, lengths_from_first_word(batch.mask))
        return self._continue_from(state, batch.inputs)

    def start(self, batch: Words) -> LSTMNState:
        state = self.features(batch)[1]
        assert state is not None
        return state

    def step(self, ids: Tensor, state: LSTMNState) -> tuple[Tensor, LSTMNState]:
        """Last words (batch,) → logits of the next (batch, vocabulary), and the state after."""
        hidden, state = self._continue_from(state, ids.unsqueeze(1))
        return self.output(hidden.squeeze(1)), state

    def _continue_from(self, state: LSTMNState, ids: Tensor) -> tuple[Tensor, LSTMNState]:
        lengths = None if state.lengths is None else state.lengths + ids.shape[1]
        return self.read(ids, state, lengths)


class LSTMNClassifier(LSTMN):
    """p(class) = softmax(W₂ relu(W₁ mean h_t)), the mean over real words: section 5.2"""

    def __init__(self, config: LSTMNConfig):
        super().__init__(config)
        classes = check_classes(config.classes)
        self.hidden = Linear(config.hidden_size, config.hidden_size)
        self.output = Linear(config.hidden_size, classes)
        self._initialise()

    def forward(self, batch: LabelledTexts) -> Tensor:
        hidden, _ = self.read(batch.ids, self.initial_state(len(batch)))
        text = mean_of_words(hidden, batch.mask)  # (batch, hidden)
        return self.output(self.dropout(self.hidden(text).relu()))  # (batch, class)


class LSTMNLayer(nn.Module):
    """An LSTM cell whose last state is what one look at all earlier states has read."""

    def __init__(self, input_size: int, config: LSTMNConfig):
        super().__init__()
        size = config.hidden_size
        score = Additive(input_size + size, size, config.attention_size or size)
        self.attention = Attention(score, sides=("words", "earlier words"))
        self.cell = LSTMCell(input_size, size)

    def initialise_score(self) -> None:
        """Have a new layer look somewhere, be it anywhere."""
        score = cast(Additive, self.attention.score)
        for weight in (score.query.weight, score.key.weight):
            nn.init.uniform_(weight, -SCORE_RANGE, SCORE_RANGE)
        nn.init.uniform_(score.direction, -DIRECTION_RANGE, DIRECTION_RANGE)

    def start(self, batch_size: int) -> Tape:
        """The tape before the first word: nothing to look at, and nothing read."""
        nothing = self.cell.start(batch_size).hidden  # (batch, hidden)
        empty = nothing[:, None][:, :0]  # (batch, 0, hidden)
        return Tape(self._memorise(empty, empty), nothing)

    def forward(self, inputs: Tensor, tape: Tape, lengths: Tensor | None) -> tuple[Tensor, Tape]:
        """(batch, position, input) → (batch, position, hidden), and the tape with all of them."""
        count = inputs.shape[1]
        states = [tape.mixed[:, None][:, :0]]  # of no word at all: (batch, 0, hidden)
        for place, vectors in enumerate(inputs.unbind(dim=1)):
            before = None if lengths is None else (lengths - (count - place)).clamp(min=0)
            hidden, tape = self.step(vectors, tape, before)
            states.append(hidden.unsqueeze(1))
        return torch.cat(states, dim=1), tape

    def step(self, inputs: Tensor, tape: Tape, lengths: Tensor | None) -> tuple[Tensor, Tape]:
        """One word (batch, input) → (batch, hidden), and the tape with it; `lengths` (batch,) are
        the real words on the tape before, where some are padding."""
        mask = None if lengths is None else Padding(lengths, side="left")
        query = torch.cat([inputs, tape.mixed], dim=-1).unsqueeze(1)  # (batch, 1, input + hidden)
        read = self.attention(query, tape.memory.keys, tape.memory.values, mask).context
        mixed, mixed_cell = read.squeeze(1).chunk(2, dim=-1)  # (batch, hidden) each
        hidden, state = self.cell(inputs, RecurrentState(mixed, mixed_cell))
        new = self._memorise(hidden.unsqueeze(1), state.cell.unsqueeze(1))
        return hidden, Tape(tape.memory.append(new), mixed)

    def _memorise(self, hidden: Tensor, cell: Tensor) -> PreparedMemory:
        """States (batch, word, hidden) as they stand on the tapes, the keys ready for the score."""
        return PreparedMemory(self.attention.prepare(hidden), torch.cat([hidden, cell], dim=-1))
