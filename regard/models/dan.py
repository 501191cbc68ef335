"""A deep averaging network: layers on the mean of a text's words, whose order is forgotten.

z₀ = 1/|X| Σ_{w∈X} v_w,  z_i = f(W_i z_{i−1} + b_i),  p(class) = softmax(W z_n + b)

The layers make small differences of the mean large. Word dropout leaves some words out of the mean
altogether, so that no single one decides. Without layers it is the neural bag of words, a linear
model of word vectors.

Iyyer, Manjunatha, Boyd-Graber & Daumé III (2015), "Deep unordered composition rivals syntactic
methods for text classification", sections 2 and 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from regard.data.batches import LabelledTexts
from regard.layers import Dropout, Embedding
from regard.layers.pooling import mean_of_words
from regard.models.checks import check_above_zero, check_at_least, check_one_of, check_rates
from regard.products import Linear

ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh}


@dataclass(frozen=True, kw_only=True)
class DANConfig:
    """Iyyer et al. (2015), section 4. The defaults are their DAN-RAND.

    bag-of-vectors: layers 0, the paper's NBOW
    """

    vocabulary_size: int
    classes: int
    embedding_size: int = 300
    hidden_size: int = 300
    layers: int = 3
    word_dropout: float = 0.3  # whole words
    dropout: float = 0.0  # of the mean and the hidden layers; not in the paper
    activation: str = "relu"  # or "tanh"
    init_range: float | None = None  # the words' vectors start within ±; None: normal
    train_vectors: bool = True  # False keeps given vectors as they are

    def __post_init__(self) -> None:
        check_at_least(1, self, "vocabulary_size", "classes", "embedding_size", "hidden_size")
        check_at_least(0, self, "layers")
        check_rates(self, "word_dropout", "dropout")
        check_one_of(tuple(ACTIVATIONS), self, "activation")
        check_above_zero(self, "init_range")


class DAN(nn.Module):
    """The mean of a text's words, layer upon layer, and a class at the end."""

    def __init__(self, config: DANConfig):
        super().__init__()
        self.config = config
        self.embedding = Embedding(config.vocabulary_size, config.embedding_size)
        if config.init_range is not None:
            nn.init.uniform_(self.embedding.weight, -config.init_range, config.init_range)
        self.embedding.weight.requires_grad_(config.train_vectors)
        self.word_dropout = WordDropout(config.word_dropout)
        sizes = [config.embedding_size] + [config.hidden_size] * config.layers
        self.layers = nn.ModuleList(Linear(*pair) for pair in pairwise(sizes))
        self.dropout = Dropout(config.dropout)
        self.output = Linear(sizes[-1], config.classes)

    def forward(self, batch: LabelledTexts) -> Tensor:
        words = self.word_dropout(batch.mask)  # (batch, position), True for words that are heard
        vectors = mean_of_words(self.embedding(batch.ids), words)  # (batch, embedding)
        for layer in self.layers:
            vectors = ACTIVATIONS[self.config.activation](layer(self.dropout(vectors)))
        return self.output(self.dropout(vectors))  # (batch, class)


class WordDropout(nn.Module):
    """Leave each word out with probability `rate`, in training; a text that loses all keeps all

    Iyyer et al. (2015), section 3: r_w ~ Bernoulli(1 − rate), and the mean is over words with
    r_w = 1.
    """

    def __init__(self, rate: float):
        super().__init__()
        self.rate = rate

    def forward(self, mask: Tensor) -> Tensor:
        """(batch, position), True where a word is real → True where it is real and stays."""
        if not self.training or self.rate == 0.0:
            return mask
        left = mask & (torch.rand(mask.shape, device=mask.device) >= self.rate)
        return torch.where(left.any(dim=1, keepdim=True), left, mask)
