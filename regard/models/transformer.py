"""The Transformer, encoder and decoder: attention is all that connects the words.

x = √d E[words] + P[positions]                                      on either side
encoder layer   x = x + SelfAttention(x);                     x = x + FeedForward(x)
decoder layer   x = x + SelfAttention(x, to the left alone);
                x = x + Attention(x, memory);                 x = x + FeedForward(x)
p(next word) = softmax(E x)

with a norm behind each sum, or before each block. Nothing is carried from word to word: all words
of a sentence are computed at once, and any two of them are one look apart. What the encoder leaves
is the memory that every layer of the decoder looks back at.

Vaswani et al. (2017), "Attention is all you need", section 3 and figure 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from regard.attention import (
    Causal,
    KeyValueCache,
    LearnedPositions,
    Mask,
    MultiHead,
    Padding,
    PreparedMemory,
    Sinusoidal,
)
from regard.data.batches import Pairs
from regard.layers import Dropout, Embedding, LayerNorm, TransformerLayer
from regard.layers.feedforward import ACTIVATIONS
from regard.models.checks import (
    check_at_least,
    check_equal_shares,
    check_one_of,
    check_rates,
    check_shared,
)
from regard.models.source import share_table
from regard.products import Linear


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Vaswani et al. (2017), table 3. The defaults are its base model.

    tiny: for some ten thousand pairs; see Wu et al. (2021), "Good for misconceived reasons",
    section 4.1
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "base": {},
        "big": {"model_size": 1024, "heads": 16, "feedforward_size": 4096, "dropout": 0.3},
        "tiny": {
            "layers": 4,
            "model_size": 128,
            "heads": 4,
            "feedforward_size": 256,
            "dropout": 0.3,
        },
    }

    vocabulary_size: int  # of the target
    source_vocabulary_size: int | None = None  # None: the target's
    layers: int = 6  # of the decoder
    encoder_layers: int | None = None  # None: as many as the decoder
    model_size: int = 512
    heads: int = 8
    feedforward_size: int = 2048
    activation: str = "relu"  # relu, gelu, gelu-tanh, silu, tanh
    norm: str = "post"  # behind each sum; pre: before each block and once at the end
    positions: str = "sinusoidal"  # or "learned", "rotary"
    longest: int = 512  # positions that are learned, if they are
    tied: bool = True  # the output layer reads the embedding's table
    shared: bool = True  # words of source and target have one table, for units they have in common
    dropout: float = 0.1  # of each block's output, and of words with their positions
    attention_dropout: float = 0.0  # of the attention weights; not in the paper
    feedforward_dropout: float = 0.0  # within the feed-forward network; not in the paper
    eps: float = 1e-5

    def __post_init__(self) -> None:
        check_at_least(1, self, "vocabulary_size", "source_vocabulary_size", "layers")
        check_at_least(1, self, "encoder_layers", "model_size", "heads", "feedforward_size")
        check_at_least(1, self, "longest")
        check_one_of(tuple(ACTIVATIONS), self, "activation")
        check_one_of(("pre", "post"), self, "norm")
        check_one_of(("learned", "sinusoidal", "rotary"), self, "positions")
        check_rates(self, "dropout", "attention_dropout", "feedforward_dropout")
        check_shared(self)
        check_equal_shares(self)


@dataclass(frozen=True)
class TransformerState:
    """What was said, a cache for each layer, and the source as each layer looks at it."""

    caches: tuple[KeyValueCache, ...]
    memories: tuple[PreparedMemory, ...]
    mask: Mask | None  # of the source's words
    sentences: Tensor  # (batch,), which source sentence each row translates
    length: int = 0  # words in the caches

    def pick(self, rows: Tensor) -> TransformerState:
        caches = tuple(cache.pick(rows) for cache in self.caches)
        sentences = self.sentences.index_select(0, rows)
        # A beam trades places among hypotheses of one sentence, and then the memory can stay.
        if torch.equal(sentences, self.sentences):
            return replace(self, caches=caches)
        memories = tuple(memory.pick(rows) for memory in self.memories)
        mask = None if self.mask is None else self.mask.pick(rows)
        return TransformerState(caches, memories, mask, sentences, self.length)

    def detach(self) -> TransformerState:
        caches = tuple(cache.detach() for cache in self.caches)
        return replace(
            self, caches=caches, memories=tuple(memory.detach() for memory in self.memories)
        )


class Transformer(nn.Module):
    """Read the source all at once, then look back at it from every layer before each word."""

    carries = False

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.output = Linear(config.model_size, config.vocabulary_size, bias=False)
        initialise(self)
        share_table(config, self.decoder.words.embedding, self.output, self.encoder.words.embedding)

    def forward(self, batch: Pairs) -> Tensor:
        return self.output(self.features(batch)[0])  # (batch, target, vocabulary)

    def features(self, batch: Pairs, state: None = None) -> tuple[Tensor, None]:
        """What the output layer reads, (batch, target, model)."""
        mask = source_padding(batch)
        memory = self.encoder(batch.source, mask)  # (batch, source, model)
        # Words stand at the front of their rows, so that none can see the padding behind.
        memories = [memory] * len(self.decoder.layers)
        return self.decoder(batch.target_input, memories, mask), None

    def start(self, batch: Pairs) -> TransformerState:
        """The state before the first word: keys and values of the source, once for all steps."""
        mask = source_padding(batch)
        memory = self.encoder(batch.source, mask)
        sentences = torch.arange(len(memory), device=memory.device)
        memories = self.decoder.prepare(memory)
        caches = tuple(KeyValueCache() for _ in self.decoder.layers)
        return TransformerState(caches, memories, mask, sentences)

    def step(self, ids: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        """Last words (batch,) → logits of the next (batch, vocabulary), and the state after."""
        # So that others can still go on from the state before.
        caches = tuple(cache.branch() for cache in state.caches)
        vectors = self.decoder(ids.unsqueeze(1), state.memories, state.mask, caches, state.length)
        state = replace(state, caches=caches, length=state.length + 1)
        return self.output(vectors.squeeze(1)), state


class Encoder(nn.Module):
    """Words that look at all words of their sentence, layer upon layer."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.words = InputEmbedding(config, config.source_vocabulary_size or config.vocabulary_size)
        layers = config.encoder_layers or config.layers
        self.layers = nn.ModuleList(
            make_layer(config, sides=("source", "source")) for _ in range(layers)
        )
        self.norm = make_final_norm(config)

    def forward(self, ids: Tensor, mask: Mask | None) -> Tensor:
        """(batch, source) → (batch, source, model)"""
        vectors = self.words(ids)
        for layer in self.layers:
            vectors = layer(vectors, mask)
        return self.norm(vectors)


class Decoder(nn.Module):
    """Words that look at those before them, then at the source, layer upon layer."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.words = InputEmbedding(config, config.vocabulary_size)
        sides = {"sides": ("target", "target"), "cross_sides": ("target", "source")}
        self.layers = nn.ModuleList(make_layer(config, **sides) for _ in range(config.layers))
        self.norm = make_final_norm(config)

    def prepare(self, memory: Tensor) -> tuple[PreparedMemory, ...]:
        """Keys and values of the source for each layer."""
        attentions = (layer.get_submodule("cross_attention") for layer in self.layers)
        return tuple(cast(MultiHead, each).prepare(memory) for each in attentions)

    def forward(
        self,
        ids: Tensor,
        memories: Sequence[Tensor | PreparedMemory],
        memory_mask: Mask | None,
        caches: Sequence[KeyValueCache | None] | None = None,
        before: int = 0,
    ) -> Tensor:
        """(batch, target) → (batch, target, model), behind `before` words in the caches."""
        vectors = self.words(ids, before)
        caches = caches or [None] * len(self.layers)
        for layer, memory, cache in zip(self.layers, memories, caches, strict=True):
            vectors = layer(vectors, Causal(), cache, memory, memory_mask)
        return self.norm(vectors)


class InputEmbedding(nn.Module):
    """x = drop(√d E[word] + P[position])

    Rotary positions turn queries and keys inside the attention, so nothing is added here.

    Vaswani et al. (2017), sections 3.4, 3.5 and 5.4.
    """

    def __init__(self, config: TransformerConfig, vocabulary_size: int):
        super().__init__()
        size = config.model_size
        self.embedding = Embedding(vocabulary_size, size, scaled=True)
        self.positions: LearnedPositions | Sinusoidal | None = None
        if config.positions == "sinusoidal":
            self.positions = Sinusoidal(size, config.longest)
        elif config.positions == "learned":
            self.positions = LearnedPositions(config.longest, size)
        self.dropout = Dropout(config.dropout)

    def forward(self, ids: Tensor, before: int = 0) -> Tensor:
        """(batch, position) → (batch, position, model), behind `before` other words."""
        vectors = self.embedding(ids)
        if self.positions is not None:
            vectors = self.positions(vectors, before)
        return self.dropout(vectors)


def source_padding(batch: Pairs) -> Mask | None:
    """The mask of the source's words; None where every row is full."""
    mask = batch.source_mask
    if bool(mask.all()):
        return None
    # Written once, it serves every layer, and every step of a decoder.
    return Padding(mask.sum(dim=1)).write_out(1, mask.shape[1], mask.device)


def make_layer(config: TransformerConfig, **sides: Any) -> TransformerLayer:
    """A layer of the encoder; with `cross_sides` one of the decoder."""
    return TransformerLayer(
        config.model_size,
        config.heads,
        config.feedforward_size,
        activation=config.activation,
        norm=config.norm,
        rotary=config.positions == "rotary",
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        feedforward_dropout=config.feedforward_dropout,
        eps=config.eps,
        **sides,
    )


def make_final_norm(config: TransformerConfig) -> nn.Module:
    """Norms that stand before each block leave the last sum without one."""
    return LayerNorm(config.model_size, config.eps) if config.norm == "pre" else nn.Identity()


def initialise(model: Transformer) -> None:
    """Glorot & Bengio (2010) for the matrices of the layers, zero for their biases.

    The embeddings have drawn theirs; an output layer of its own begins like one.
    """
    for name, weight in model.named_parameters():
        if ".layers." in name and weight.dim() > 1:
            nn.init.xavier_uniform_(weight)
        elif name.endswith("bias"):
            nn.init.zeros_(weight)
    nn.init.normal_(model.output.weight, std=model.config.model_size**-0.5)
