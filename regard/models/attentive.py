"""A recurrent language model that looks back at its own past.

α = softmax(score(k_t, k_{t−window} … k_{t−1}))   where the current state would look
r_t = Σ α_i v_i                                   what it reads there
h*_t = tanh(W [r_t; p_t])                         what predicts the next word

The state of a recurrent network has three jobs: to be found, to be read and to predict. In the
plain form one vector does them all, k = v = p = h. The splits give each job a share of the state:
[k; v] = h with p = v, or [k; v; p] = h. Even so most of the weight falls on the last five states.

A state finds its own neighbourhood too easily and would ignore the past, so it looks at earlier
ones only, unless `include_current`. The window reaches back over the borders between batches.

Daniluk, Rocktäschel, Welbl & Riedel (2017), "Frustratingly short attention spans in neural language
modeling", sections 2.1 to 2.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.attention import (
    Additive,
    Attention,
    Dot,
    General,
    Mask,
    Padding,
    ScaledDot,
    Score,
    StrictlyCausal,
    Window,
)
from regard.data.batches import Words
from regard.layers import RecurrentState
from regard.models.checks import check_at_least, check_one_of
from regard.models.padding import LeftAligned, take_last
from regard.models.recurrent import Reader, RecurrentConfig, make_dropout, tie_and_initialise
from regard.products import Linear

SPLITS = {"none": 1, "key-value": 2, "key-value-predict": 3}
SCORES = ("additive", "dot", "scaled-dot", "general")


@dataclass(frozen=True, kw_only=True)
class AttentiveConfig(RecurrentConfig):
    """A recurrent model's settings, and how it looks back. The defaults are the plain form with
    the paper's score, on the small model of Zaremba et al. (2014)."""

    window: int = 15  # how many earlier states may be seen
    include_current: bool = False  # the state that looks may see itself
    split: str = "none"  # or "key-value", "key-value-predict"
    score: str = "additive"  # or "dot", "scaled-dot", "general"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, self, "window")
        check_one_of(tuple(SPLITS), self, "split")
        check_one_of(SCORES, self, "score")
        if self.hidden_size % self.parts:
            raise ValueError(
                f"hidden_size ({self.hidden_size}) must be a multiple of {self.parts}: "
                f"{self.split} gives each part an equal share"
            )

    @property
    def parts(self) -> int:
        """How many parts of equal size the state is split into."""
        return SPLITS[self.split]

    @property
    def part_size(self) -> int:
        return self.hidden_size // self.parts


class AttentiveState(NamedTuple):
    """The recurrent state, and the last states as keys and values; rows of them end together."""

    recurrent: RecurrentState
    keys: Tensor  # (batch, up to window, part)
    values: Tensor  # (batch, up to window, part)
    lengths: Tensor  # (batch,), how many of them are there

    def pick(self, rows: Tensor) -> AttentiveState:
        parts = (part.index_select(0, rows) for part in self[1:])
        return AttentiveState(self.recurrent.pick(rows), *parts)

    def detach(self) -> AttentiveState:
        parts = (part.detach() for part in self[1:])
        return AttentiveState(self.recurrent.detach(), *parts)


class AttentiveLM(nn.Module):
    """Read word by word, look back before each prediction."""

    carries = True

    def __init__(self, config: AttentiveConfig):
        super().__init__()
        self.config = config
        self.reader = Reader(config)
        self.attention = Attention(_score(config), sides=("words", "words"))
        features_size = config.word_size if config.tied else config.part_size
        self.mix = Linear(2 * config.part_size, features_size, bias=False)
        self.dropout = make_dropout(config, config.output_dropout)
        self.output = Linear(features_size, config.vocabulary_size)
        tie_and_initialise(self, config)
        self._initialise_mix()

    def forward(self, batch: Words) -> Tensor:
        return self.output(self.features(batch)[0])  # (batch, position, vocabulary)

    def features(
        self, batch: Words, state: AttentiveState | None = None
    ) -> tuple[Tensor, AttentiveState | None]:
        """What the output layer reads, (batch, position, features), and the state at the end."""
        aligned = LeftAligned.from_batch(batch)
        state = self.initial_state(len(aligned.ids)) if state is None else state
        states, recurrent = self.reader(aligned, state.recurrent)  # (batch, position, hidden)
        mixed, state = self._attend(states, aligned.lengths, state)
        return aligned.restore(self.dropout(mixed)), state._replace(recurrent=recurrent)

    def _initialise_mix(self) -> None:
        """Let what predicts pass the mix unchanged at first, as if there were no looking back.

        Small numbers through one more small layer would learn slowly, and with a rate that suits
        the plain model not at all.
        """
        with torch.no_grad():
            predicting = self.mix.weight[:, self.config.part_size :]  # (features, part)
            nn.init.eye_(predicting)

    def initial_state(self, batch_size: int) -> AttentiveState:
        """The state before the first word: nothing to look back at."""
        recurrent = self.reader.recurrent.start(batch_size)
        empty = recurrent.hidden.new_empty(batch_size, 0, self.config.part_size)
        lengths = torch.zeros(batch_size, dtype=torch.long, device=empty.device)
        return AttentiveState(recurrent, empty, empty, lengths)

    def start(self, batch: Words) -> AttentiveState:
        aligned = LeftAligned.from_batch(batch)
        state = self.initial_state(len(aligned.ids))
        states, recurrent = self.reader(aligned, state.recurrent)
        keys, values, _ = self._split(states)
        state = self._update_memory(keys, values, aligned.lengths, state)
        return state._replace(recurrent=recurrent)

    def step(self, ids: Tensor, state: AttentiveState) -> tuple[Tensor, AttentiveState]:
        """Last words (batch,) → logits of the next (batch, vocabulary), and the state after."""
        hidden, recurrent = self.reader.step(ids, state.recurrent)
        mixed, state = self._attend(hidden.unsqueeze(1), None, state)
        return self.output(mixed.squeeze(1)), state._replace(recurrent=recurrent)

    def _attend(
        self, states: Tensor, lengths: Tensor | None, state: AttentiveState
    ) -> tuple[Tensor, AttentiveState]:
        """Look back: (batch, position, hidden) → (batch, position, features), the state after."""
        keys, values, predicting = self._split(states)
        mask = self._mask(state.lengths + states.shape[1])
        seen_keys = torch.cat([state.keys, keys], dim=1)  # (batch, memory + position, part)
        seen_values = torch.cat([state.values, values], dim=1)
        read = self.attention(keys, seen_keys, seen_values, mask).context  # (batch, position, part)
        mixed = self.mix(torch.cat([read, predicting], dim=-1)).tanh()
        return mixed, self._update_memory(keys, values, lengths, state)

    def _split(self, states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The states as keys, as values, and as what predicts."""
        parts = states.chunk(self.config.parts, dim=-1)
        return parts[0], parts[min(1, self.config.parts - 1)], parts[-1]

    def _mask(self, lengths: Tensor) -> Mask:
        """The last `window` states of each row; `lengths` (batch,) counts them from the end."""
        mask = Window(self.config.window) & Padding(lengths, side="left")
        return mask if self.config.include_current else StrictlyCausal() & mask

    def _update_memory(
        self, keys: Tensor, values: Tensor, lengths: Tensor | None, state: AttentiveState
    ) -> AttentiveState:
        """The state with these keys and values behind its own, the last `window` of them."""
        window = self.config.window
        new = keys.shape[1] if lengths is None else lengths
        return state._replace(
            keys=take_last(state.keys, keys, lengths, window),
            values=take_last(state.values, values, lengths, window),
            lengths=(state.lengths + new).clamp(max=window),
        )


def _score(config: AttentiveConfig) -> Score:
    size = config.part_size
    if config.score == "additive":
        return Additive(size, size, size)
    if config.score == "general":
        return General(size, size)
    return Dot() if config.score == "dot" else ScaledDot()
