"""GPT-2, a Transformer that predicts the next word, and the language models like it.

x = E[words] + P[positions]
x = x + MultiHead(norm(x)),  x = x + FeedForward(norm(x))   in each layer
p(next word) = softmax(E norm(x))

No state is carried from word to word. Every word looks at all before it at once, so a whole text is
learned from in one go, and nothing is further away than one look.

The parts: Vaswani et al. (2017), "Attention is all you need". The decoder alone as a language
model, with the norm before each block, one more at the end, and residual projections that start
smaller the deeper the model is: Radford et al. (2019), "Language models are unsupervised multitask
learners", section 2.3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from regard.attention import (
    Causal,
    KeyValueCache,
    LearnedPositions,
    Mask,
    Packed,
    Padding,
    ScaledDot,
    Sinusoidal,
)
from regard.data.batches import Words
from regard.layers import Dropout, Embedding, LayerNorm, TransformerLayer
from regard.layers.feedforward import ACTIVATIONS
from regard.models.checks import (
    check_at_least,
    check_equal_shares,
    check_length,
    check_one_of,
    check_rates,
)
from regard.models.padding import document_positions, lengths_from_first_word
from regard.products import Linear

RESIDUAL_WEIGHTS = ("attention.output.weight", "feedforward.contract.weight")  # end a block


@dataclass(frozen=True, kw_only=True)
class GPT2Config:
    """Radford et al. (2019), table 2. The defaults are its smallest model; presets are its rows."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "small": {},
        "medium": {"layers": 24, "model_size": 1024, "heads": 16},
        "large": {"layers": 36, "model_size": 1280, "heads": 20},
        "xl": {"layers": 48, "model_size": 1600, "heads": 25},
    }

    vocabulary_size: int
    longest: int = 1024  # positions
    model_size: int = 768
    layers: int = 12
    heads: int = 12
    feedforward_size: int | None = None  # None: four times the model's
    activation: str = "gelu-tanh"  # relu, gelu, gelu-tanh, silu, tanh
    norm: str = "pre"  # before each block and once at the end; post: behind each sum
    positions: str = "learned"  # or "sinusoidal", "rotary"
    tied: bool = True  # the output layer reads the embedding's table
    bias: bool = True
    dropout: float = 0.1
    attention_dropout: float | None = None  # of the attention weights; None: as everywhere
    embedding_dropout: float | None = None  # before the first layer; None: as everywhere
    scaled_by_size: bool = True  # scores are divided by √(head size),
    scaled_by_layer: bool = False  # and those of the n-th layer by n
    init_std: float = 0.02  # of all matrices, at first
    eps: float = 1e-5

    def __post_init__(self) -> None:
        check_at_least(1, self, "vocabulary_size", "longest", "model_size", "layers", "heads")
        check_at_least(1, self, "feedforward_size")
        check_one_of(tuple(ACTIVATIONS), self, "activation")
        check_one_of(("pre", "post"), self, "norm")
        check_one_of(("learned", "sinusoidal", "rotary"), self, "positions")
        check_rates(self, "dropout", "attention_dropout", "embedding_dropout")
        check_equal_shares(self)


@dataclass(frozen=True)
class GPT2State:
    """The keys and values of all that was said, a cache for each layer."""

    caches: tuple[KeyValueCache, ...]
    length: int = 0  # positions in the caches, padding among them
    lengths: Tensor | None = None  # (batch,), words among them; None when all of them are

    def pick(self, rows: Tensor) -> GPT2State:
        lengths = None if self.lengths is None else self.lengths.index_select(0, rows)
        caches = tuple(cache.pick(rows) for cache in self.caches)
        return replace(self, caches=caches, lengths=lengths)

    def detach(self) -> GPT2State:
        return replace(self, caches=tuple(cache.detach() for cache in self.caches))

    def branch(self) -> tuple[KeyValueCache, ...]:
        """Caches to go on with, so that others can still go on from this state."""
        return tuple(cache.branch() for cache in self.caches)


class GPT2(nn.Module):
    """Look at every word so far, layer upon layer, and predict the next."""

    carries = False

    def __init__(self, config: GPT2Config):
        super().__init__()
        self.config = config
        sinusoidal = config.positions == "sinusoidal"
        self.embedding = Embedding(config.vocabulary_size, config.model_size, scaled=sinusoidal)
        self.positions = _make_positions(config)
        rate = config.dropout if config.embedding_dropout is None else config.embedding_dropout
        self.dropout = Dropout(rate)
        self.layers = nn.ModuleList(_make_layer(config, n) for n in range(config.layers))
        final = LayerNorm(config.model_size, config.eps)
        self.norm = final if config.norm == "pre" else nn.Identity()
        self.output = Linear(config.model_size, config.vocabulary_size, bias=False)
        self._tie_and_initialise()

    def forward(self, batch: Words) -> Tensor:
        return self.output(self.features(batch)[0])  # (batch, position, vocabulary)

    def features(
        self, batch: Words, state: GPT2State | None = None
    ) -> tuple[Tensor, GPT2State | None]:
        """What the output layer reads, (batch, position, model).

        With a state the words go on from there, and the state behind them is handed back.
        """
        if state is not None:
            return self._continue_from(state, batch.inputs, _count_words(batch, state))
        if batch.documents is None:
            lengths = lengths_from_first_word(batch.mask)
            positions, mask = self._locate(batch.inputs.shape[1], 0, lengths)
        else:
            positions, mask = self._locate_packed(batch.documents)
        return self._compute_features(batch.inputs, positions, mask), None

    def _compute_features(
        self,
        ids: Tensor,
        positions: Tensor | slice,
        mask: Mask,
        caches: Sequence[KeyValueCache | None] | None = None,
    ) -> Tensor:
        """(batch, position) → (batch, position, model), each word at its position."""
        vectors = self.embedding(ids)  # (batch, position, model)
        if self.positions is not None:
            vectors = vectors + self.positions.table[positions]
        vectors = self.dropout(vectors)
        for layer, cache in zip(self.layers, caches or [None] * len(self.layers), strict=True):
            vectors = layer(vectors, mask, cache)
        return self.norm(vectors)

    def start(self, batch: Words) -> GPT2State:
        state = GPT2State(self._make_caches())
        return self._continue_from(state, batch.inputs, _count_words(batch, state))[1]

    def _make_caches(self) -> tuple[KeyValueCache, ...]:
        return tuple(KeyValueCache() for _ in self.layers)

    def step(self, ids: Tensor, state: GPT2State) -> tuple[Tensor, GPT2State]:
        """Last words (batch,) → logits of the next (batch, vocabulary), and the state after."""
        lengths = None if state.lengths is None else state.lengths + 1
        vectors, state = self._continue_from(state, ids.unsqueeze(1), lengths)
        return self.output(vectors.squeeze(1)), state

    def _continue_from(
        self, state: GPT2State, ids: Tensor, lengths: Tensor | None
    ) -> tuple[Tensor, GPT2State]:
        """Read on behind a state; `lengths` counts the words of each row when these are read."""
        positions, mask = self._locate(ids.shape[1], state.length, lengths)
        caches = state.branch()
        vectors = self._compute_features(ids, positions, mask, caches)
        length = state.length + ids.shape[1]
        return vectors, GPT2State(caches, length, lengths)

    def _locate(
        self, count: int, before: int, lengths: Tensor | None
    ) -> tuple[Tensor | slice, Mask]:
        """The positions of `count` words behind `before` others, and the mask of what they may see.

        Positions are counted from a row's first word, and the padding before it is never seen.
        """
        end = before + count
        if lengths is None:
            check_length(self.config, end)
            return slice(before, end), Causal()
        check_length(self.config, int(lengths.max()))
        gaps = (end - lengths).unsqueeze(1)  # (batch, 1)
        positions = torch.arange(before, end, device=lengths.device) - gaps  # (batch, position)
        padding = Padding(lengths, side="left")
        # The one word of a step sees all before it. Written once, its mask serves every layer.
        mask = padding.write_out(1, end, lengths.device) if count == 1 else Causal() & padding
        return positions.clamp(min=0), mask

    def _locate_packed(self, documents: Tensor) -> tuple[Tensor, Mask]:
        """Positions counted from a document's first word; other documents are never seen."""
        positions = document_positions(documents)
        check_length(self.config, int(positions.max()) + 1)
        return positions, Causal() & Packed(documents)

    def _tie_and_initialise(self) -> None:
        """Tie output and embedding weights if `tied`, drop biases unless `bias`, initialise."""
        if self.config.tied:
            self.output.weight = self.embedding.weight
        if not self.config.bias:
            for part in self.modules():
                if isinstance(getattr(part, "bias", None), nn.Parameter):
                    part.register_parameter("bias", None)
        # So that the sum of all blocks along the road starts no larger than one of them.
        residual_scale = 1 / math.sqrt(2 * self.config.layers)
        for name, weight in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(weight)
            elif weight.dim() > 1:
                scale = residual_scale if name.endswith(RESIDUAL_WEIGHTS) else 1
                nn.init.normal_(weight, std=self.config.init_std * scale)


def _make_layer(config: GPT2Config, number: int) -> TransformerLayer:
    return TransformerLayer(
        config.model_size,
        config.heads,
        config.feedforward_size or 4 * config.model_size,
        activation=config.activation,
        norm=config.norm,
        rotary=config.positions == "rotary",
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        eps=config.eps,
        score=ScaledDot(_score_factor(config, number)),
    )


def _score_factor(config: GPT2Config, number: int) -> float:
    """What the inner products of a layer, counted from 0, are multiplied by."""
    by_size = math.sqrt(config.model_size // config.heads) if config.scaled_by_size else 1.0
    return 1.0 / (by_size * (number + 1 if config.scaled_by_layer else 1))


def _make_positions(config: GPT2Config) -> LearnedPositions | Sinusoidal | None:
    """Rotary positions turn queries and keys inside the attention, so nothing is added here."""
    if config.positions == "rotary":
        return None
    if config.positions == "sinusoidal":
        return Sinusoidal(config.model_size, config.longest)
    return LearnedPositions(config.longest, config.model_size)


def _count_words(batch: Words, state: GPT2State) -> Tensor | None:
    """How many words each row has when this batch is read behind the state."""
    mask = batch.mask
    if batch.documents is not None:
        raise ValueError("documents are packed in this batch, and a state goes on with one alone")
    if bool(mask.all()):
        return None if state.lengths is None else state.lengths + mask.shape[1]
    if state.length or not bool((mask[:, -1] | ~mask.any(dim=1)).all()):
        raise ValueError(
            "mask must be True from a row's first word on: padding stands on the left of a prompt, "
            "and nowhere else once a text is to be continued"
        )
    return lengths_from_first_word(mask)
