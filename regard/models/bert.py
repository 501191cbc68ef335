"""BERT: an encoder that reads in both directions at once, and guesses the words it is not shown.

x = norm(E[words] + S[segments] + P[positions])
x = norm(x + MultiHead(x)),  x = norm(x + FeedForward(x))   in each layer
p(hidden word) = softmax(E norm(gelu(W x + b)) + c)
p(the second text follows the first) = softmax(W tanh(W x_[CLS] + b) + b)

A model that predicts the next word may look to one side only. Hide some words instead, and every
word may look at all others. Whether a second text follows the first is asked of the vector of
[CLS], the mark in front, which so learns to stand for the whole; a classifier reads it there.

Devlin, Chang, Lee & Toutanova (2019), "BERT: Pre-training of deep bidirectional transformers for
language understanding", section 3 and appendix A.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from regard.attention import Dense, LearnedPositions, Mask
from regard.data.batches import MarkedTexts, MaskedTexts
from regard.layers import Dropout, Embedding, LayerNorm, TransformerLayer
from regard.layers.feedforward import ACTIVATIONS
from regard.layers.guided import check_guided, start_guided
from regard.models.checks import (
    check_above_zero,
    check_at_least,
    check_equal_shares,
    check_length,
    check_one_of,
    check_rates,
)

POSITION_STD = 0.02
"""How positions and segments start, whatever the words do: first of all a word is a word."""


@dataclass(frozen=True, kw_only=True)
class BertConfig:
    """Devlin et al. (2019), section 3. The defaults are BERT-Base; presets are its rows, and a
    small one for a laptop."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "small": {"layers": 4, "model_size": 256, "heads": 4, "longest": 128},
        "base": {},
        "large": {"layers": 24, "model_size": 1024, "heads": 16},
    }

    vocabulary_size: int
    classes: int | None = None  # of a classifier; pretraining has none
    longest: int = 512  # positions
    segments: int = 2
    model_size: int = 768
    layers: int = 12
    heads: int = 12
    feedforward_size: int | None = None  # None: four times the model's
    activation: str = "gelu"  # gelu-tanh in Google's own code
    pooler: bool = True  # a layer on top of [CLS]
    masked_words: bool = True  # guess hidden words
    next_sentence: bool = True  # tell whether the second text follows the first
    dropout: float = 0.1
    attention_dropout: float | None = None  # of the attention weights; None: as everywhere
    classifier_dropout: float | None = None  # of what the classes are read from; None: as above
    init_std: float = 0.02
    guided: bool = False  # heads begin by looking at their like and at neighbours
    eps: float = 1e-12

    def __post_init__(self) -> None:
        check_at_least(1, self, "vocabulary_size", "classes", "longest", "segments", "model_size")
        check_at_least(1, self, "layers", "heads", "feedforward_size")
        check_one_of(tuple(ACTIVATIONS), self, "activation")
        check_rates(self, "dropout", "attention_dropout", "classifier_dropout")
        check_equal_shares(self)
        check_above_zero(self, "init_std")
        if self.guided:
            check_guided(self.model_size, self.heads)
        if self.next_sentence and not self.pooler:
            raise ValueError("next_sentence (True) needs the pooler (False), which it is read from")


class BertEncoder(nn.Module):
    """Words in, a vector for each of them out: what pretraining and classifier share."""

    def __init__(self, config: BertConfig):
        super().__init__()
        self.config = config
        self.embedding = Embedding(config.vocabulary_size, config.model_size)
        self.segments = Embedding(config.segments, config.model_size)
        self.positions = LearnedPositions(config.longest, config.model_size)
        self.norm = LayerNorm(config.model_size, config.eps)
        self.dropout = Dropout(config.dropout)
        self.layers = nn.ModuleList(_make_layer(config) for _ in range(config.layers))
        self.pooler = Pooler(config.model_size) if config.pooler else None

    def features(self, batch: MaskedTexts | MarkedTexts) -> Tensor:
        """The vectors of the last layer, (batch, position, model)."""
        *_, last = self.hidden_states(batch)
        return last

    def hidden_states(self, batch: MaskedTexts | MarkedTexts) -> Iterator[Tensor]:
        """The vectors of every layer in turn, (batch, position, model), the embeddings first."""
        check_length(self.config, batch.ids.shape[1])
        if self.config.segments == 1 and bool(batch.segments.any()):
            raise ValueError("segments (1): this model knows one text at a time and no second")
        vectors = self.embedding(batch.ids) + self.segments(batch.segments)
        vectors = self.dropout(self.norm(self.positions(vectors)))  # (batch, position, model)
        yield vectors
        mask = _padding_mask(batch.mask)
        for layer in self.layers:
            vectors = layer(vectors, mask)
            yield vectors

    def pool(self, features: Tensor) -> Tensor:
        """One vector for the whole, (batch, position, model) → (batch, model)."""
        if self.pooler is None:
            raise ValueError("pooler (False): this model has no layer on top of its first word")
        return self.pooler(features)

    def initialise(self) -> None:
        """Draw all matrices from a normal distribution, and begin with biases of zero."""
        for name, weight in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(weight)
            elif weight.dim() > 1:
                nn.init.normal_(weight, std=self.config.init_std)
        for place in (self.positions.table, self.segments.weight):
            nn.init.normal_(place, std=POSITION_STD)
        if self.config.guided:
            names = self.named_parameters()
            projections = [weight for name, weight in names if name.endswith("projection.weight")]
            start_guided(self.positions.table, projections, self.config.heads)


class Bert(BertEncoder):
    """Guess the words that are hidden, and tell whether the second text follows the first."""

    def __init__(self, config: BertConfig):
        super().__init__(config)
        self.masked_head: MaskedHead | None = None
        self.output: nn.Linear | None = None
        self.next_sentence: nn.Linear | None = None
        if config.masked_words:
            self.masked_head = MaskedHead(config)
            self.output = nn.Linear(config.model_size, config.vocabulary_size)
            self.output.weight = self.embedding.weight
        if config.next_sentence:
            self.next_sentence = nn.Linear(config.model_size, 2)
        self.initialise()

    def forward(self, batch: MaskedTexts) -> Tensor:
        return self.word_logits(self.features(batch))  # (batch, position, vocabulary)

    def word_logits(self, features: Tensor) -> Tensor:
        """(…, model) → (…, vocabulary), of the word that stands at a position."""
        if self.masked_head is None or self.output is None:
            raise ValueError("masked_words (False): this model guesses no words")
        return self.output(self.masked_head(features))

    def next_logits(self, features: Tensor) -> Tensor:
        """(batch, position, model) → (batch, 2): the second text follows the first, or does not."""
        if self.next_sentence is None:
            raise ValueError("next_sentence (False): this model does not tell what follows")
        return self.next_sentence(self.pool(features))


class BertClassifier(BertEncoder):
    """Read the class of a text from the vector of [CLS]."""

    reads = MarkedTexts

    def __init__(self, config: BertConfig):
        super().__init__(config)
        if config.classes is None or not config.pooler:
            raise ValueError(
                f"a classifier needs classes ({config.classes}) and the pooler ({config.pooler}) "
                "that they are read from"
            )
        rate = config.classifier_dropout
        self.classifier_dropout = Dropout(config.dropout if rate is None else rate)
        self.classifier = nn.Linear(config.model_size, config.classes)
        self.initialise()

    def forward(self, batch: MarkedTexts) -> Tensor:
        pooled = self.pool(self.features(batch))  # (batch, model)
        return self.classifier(self.classifier_dropout(pooled))  # (batch, class)


class Pooler(nn.Module):
    """y = tanh(W x_[CLS] + b)"""

    def __init__(self, model_size: int):
        super().__init__()
        self.dense = nn.Linear(model_size, model_size)

    def forward(self, features: Tensor) -> Tensor:
        """(batch, position, model) → (batch, model)"""
        return self.dense(features[:, 0]).tanh()


class MaskedHead(nn.Module):
    """y = norm(gelu(W x + b)): what is compared with every word of the vocabulary"""

    def __init__(self, config: BertConfig):
        super().__init__()
        self.dense = nn.Linear(config.model_size, config.model_size)
        self.activation = config.activation
        self.norm = LayerNorm(config.model_size, config.eps)

    def forward(self, features: Tensor) -> Tensor:
        return self.norm(ACTIVATIONS[self.activation](self.dense(features)))  # (…, model)


def _make_layer(config: BertConfig) -> TransformerLayer:
    return TransformerLayer(
        config.model_size,
        config.heads,
        config.feedforward_size or 4 * config.model_size,
        activation=config.activation,
        norm="post",
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        eps=config.eps,
    )


def _padding_mask(mask: Tensor) -> Mask | None:
    """Every word sees all that are real; written out once, for all layers."""
    if bool(mask.all()):
        return None
    return Dense(mask.unsqueeze(1)).write_out(1, mask.shape[1], mask.device)
