"""A feed-forward language model over a window of words.

y = b + W x + U tanh(d + H x),  x = [C(w_{t−n+2}); …; C(w_t)],  p(w_{t+1}) = softmax(y)

An n-gram model has learned nothing about "a cat ran" from "a dog walked". Here each word is a point
in a space, learned together with the function that predicts from the points, so that whatever is
learned about a sentence holds for its neighbours, too. The direct connections W may be left out,
and in the paper's best models they are.

Bengio, Ducharme, Vincent & Jauvin (2003), "A neural probabilistic language model", section 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.data.batches import Words
from regard.layers import Dropout, Embedding
from regard.models.checks import check_above_zero, check_at_least, check_rates
from regard.models.padding import LeftAligned
from regard.products import Linear


@dataclass(frozen=True, kw_only=True)
class WindowConfig:
    """Bengio et al. (2003), table 1. The defaults are MLP9, the best that is not a mixture."""

    vocabulary_size: int
    order: int = 5  # n: a word is predicted from the n − 1 before it
    embedding_size: int = 30
    hidden_size: int = 100
    direct: bool = False  # the output reads the words' vectors, too
    dropout: float = 0.0  # of the words' vectors and the hidden layer; not in the paper
    init_range: float = 0.1  # the words' vectors start within ±, near to each other

    def __post_init__(self) -> None:
        check_at_least(1, self, "vocabulary_size", "embedding_size", "hidden_size")
        check_at_least(2, self, "order")
        check_above_zero(self, "init_range")
        check_rates(self, "dropout")


class WindowState(NamedTuple):
    """The last n − 2 words, for the windows that reach back over the border."""

    ids: Tensor  # (batch, order − 2)

    def pick(self, rows: Tensor) -> WindowState:
        return WindowState(self.ids.index_select(0, rows))

    def detach(self) -> WindowState:
        return self


class WindowLM(nn.Module):
    """Predict the next word from the last few, side by side."""

    carries = True

    def __init__(self, config: WindowConfig):
        super().__init__()
        self.config = config
        # One row more than there are words: what stands before the first word is nothing, a zero.
        self.padding_id = config.vocabulary_size
        self.embedding = Embedding(self.padding_id + 1, config.embedding_size, self.padding_id)
        # A rare word is moved a few times only: far out, it would stay where chance has put it.
        with torch.no_grad():
            self.embedding.weight[: self.padding_id].uniform_(-config.init_range, config.init_range)
        window_size = (config.order - 1) * config.embedding_size
        self.hidden = Linear(window_size, config.hidden_size)
        self.dropout = Dropout(config.dropout)
        features_size = config.hidden_size + (window_size if config.direct else 0)
        self.output = Linear(features_size, config.vocabulary_size)

    def forward(self, batch: Words) -> Tensor:
        return self.output(self.features(batch)[0])  # (batch, position, vocabulary)

    def features(
        self, batch: Words, state: WindowState | None = None
    ) -> tuple[Tensor, WindowState | None]:
        """What the output layer reads, (batch, position, features), and the last words."""
        aligned = LeftAligned.from_batch(batch)
        before = self.initial_state(len(aligned.ids)) if state is None else state
        after = WindowState(aligned.take_last_ids(before.ids, self.config.order - 2))
        features = self._compute_features(torch.cat([before.ids, aligned.ids], dim=1))
        return aligned.restore(features), after

    def initial_state(self, batch_size: int) -> WindowState:
        """The state before the first word."""
        shape = (batch_size, self.config.order - 2)
        return WindowState(torch.full(shape, self.padding_id, device=self.embedding.weight.device))

    def start(self, batch: Words) -> WindowState:
        aligned = LeftAligned.from_batch(batch)
        before = self.initial_state(len(aligned.ids))
        return WindowState(aligned.take_last_ids(before.ids, self.config.order - 2))

    def step(self, ids: Tensor, state: WindowState) -> tuple[Tensor, WindowState]:
        """Last words (batch,) → logits of the next (batch, vocabulary), and the state after."""
        words = torch.cat([state.ids, ids.unsqueeze(1)], dim=1)  # (batch, order − 1)
        return self.output(self._compute_features(words).squeeze(1)), WindowState(words[:, 1:])

    def _compute_features(self, words: Tensor) -> Tensor:
        """(batch, order − 2 + position) ids → (batch, position, features)."""
        vectors = self.embedding(words)  # (batch, order − 2 + position, embedding)
        count = words.shape[1] - self.config.order + 2
        shifted = [vectors[:, first : first + count] for first in range(self.config.order - 1)]
        window = self.dropout(torch.cat(shifted, dim=-1))  # (batch, position, window)
        hidden = self.dropout(self.hidden(window).tanh())  # (batch, position, hidden)
        return torch.cat([hidden, window], dim=-1) if self.config.direct else hidden
