"""ELMo: word vectors from a language model that reads both ways.

x_k = character CNN of word k;  h⃗_{k,j}, h⃖_{k,j} = two stacks of LSTMs, one from each end
p(w_{k+1}) = softmax(W h⃗_{k,L}),  p(w_{k−1}) = softmax(W h⃖_{k,L})
ELMo_k = γ Σ_j s_j h_{k,j},  s = softmax(w),  h_{k,0} = [x_k; x_k],  h_{k,j} = [h⃗_{k,j}; h⃖_{k,j}]

A word's vector depends on the sentence around it, and on how it is spelled, so that no word is
unknown. The two directions share the words' vectors and the softmax, and nothing in between. Each
layer knows something else (the lower ones more of syntax, the upper ones more of meaning), and a
task that reads the vectors learns how to mix them.

Peters, Neumann, Iyyer, Gardner, Clark, Lee & Zettlemoyer (2018), "Deep contextualized word
representations", section 3. The character CNN: Kim, Jernite, Sontag & Rush (2016), section 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.data.batches import LabelledSpellings, Spellings
from regard.layers import Dropout, Embedding, RecurrentState
from regard.layers.pooling import maximum_of_words, mean_of_words
from regard.layers.projected import ProjectedLSTM
from regard.models.checks import check_at_least, check_classes, check_one_of, check_rates
from regard.text.spelling import CHARACTERS, FILLER

ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh}
PUBLISHED_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
GATE_BIAS = -2.0
"""Of a new highway layer's gate: at first nearly everything passes as it is."""


@dataclass(frozen=True, kw_only=True)
class ELMoConfig:
    """Peters et al. (2018), section 3.4. The defaults are the published model, 93.6 million
    parameters without a softmax; the presets `small` and `medium` were published beside it."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "small": {"hidden_size": 1024, "projection_size": 128, "highway_layers": 1},
        "medium": {"hidden_size": 2048, "projection_size": 256, "highway_layers": 1},
    }

    vocabulary_size: int | None = None  # of the softmax; None: it only reads, and guesses no words
    character_size: int = 16
    filters: tuple[tuple[int, int], ...] = PUBLISHED_FILTERS  # (characters wide, how many) each
    activation: str = "relu"  # of the filters
    highway_layers: int = 2
    projection_size: int = 512  # of words' vectors and of each direction's outputs
    hidden_size: int = 4096  # of the cells
    layers: int = 2
    cell_clip: float = 3.0  # 0 clips nothing, here and below
    projection_clip: float = 3.0
    residual: bool = True  # from the second layer on
    dropout: float = 0.1  # of what the layers, the softmax and a classifier read

    classes: int | None = None  # of a classifier; a language model has none of these
    layer: int | None = None  # the one it reads, 0 for words' own; None: a learned mix of all
    mix_norm: bool = False  # layers are normalised before they are mixed
    classifier_size: int = 128  # of a classifier's hidden layer
    frozen: bool = True  # a classifier leaves the language model as it is

    def __post_init__(self) -> None:
        check_at_least(1, self, "vocabulary_size", "character_size", "projection_size")
        check_at_least(1, self, "hidden_size", "layers", "classes", "classifier_size")
        check_at_least(0, self, "highway_layers", "layer")
        check_rates(self, "dropout")
        check_one_of(tuple(ACTIVATIONS), self, "activation")
        if not self.filters or min(number for pair in self.filters for number in pair) < 1:
            raise ValueError(
                f"filters ({self.filters}) must be pairs of a width and a count, from 1"
            )
        for name in ("cell_clip", "projection_clip"):
            clip = getattr(self, name)
            if clip < 0:
                raise ValueError(f"{name} ({clip}) must be above 0, or 0 to clip nothing")
        if self.layer is not None and self.layer > self.layers:
            raise ValueError(f"layer ({self.layer}) must be from 0 to layers ({self.layers})")


class ELMoState(NamedTuple):
    """What both directions of every layer know at the end of what they have read."""

    layers: tuple[RecurrentState, ...]

    def pick(self, rows: Tensor) -> ELMoState:
        return ELMoState(tuple(state.pick(rows) for state in self.layers))

    def detach(self) -> ELMoState:
        return ELMoState(tuple(state.detach() for state in self.layers))


class ELMo(nn.Module):
    """Read a sentence both ways, and at each word guess the next and the one before."""

    carries = False  # every sentence is read from the start; `reader` goes on from a state if asked

    def __init__(self, config: ELMoConfig):
        super().__init__()
        self.config = config
        self.reader = Reader(config)
        self.dropout = Dropout(config.dropout)
        size = config.vocabulary_size
        self.output = None if size is None else nn.Linear(config.projection_size, size)

    def forward(self, batch: Spellings) -> Tensor:
        """Logits (direction, batch, position, vocabulary): of the next word, of the one before."""
        if self.output is None:
            raise ValueError("vocabulary_size (None): this model reads words, and guesses none")
        return self.output(self.features(batch))

    def features(self, batch: Spellings) -> Tensor:
        """What the softmax reads, (direction, batch, position, projection)."""
        layers, _ = self.reader(batch.characters, batch.mask)
        return self.dropout(torch.stack(layers[-1].chunk(2, dim=-1)))

    def embed(
        self, characters: Tensor, mask: Tensor, state: ELMoState | None = None
    ) -> tuple[list[Tensor], ELMoState]:
        """Each layer and behind them their mean, (batch, position, 2 · projection): what the mix is
        before a task has learned one."""
        layers, state = self.reader(characters, mask, state)
        return [*layers, torch.stack(layers).mean(dim=0)], state


class ELMoClassifier(nn.Module):
    """v_k = relu(W ELMo_k + b),  p(class) = softmax(U [mean_k v_k; max_k v_k] + b′)

    What the layers are worth for the task is learned as the weights of their mix.
    """

    reads = LabelledSpellings

    def __init__(self, config: ELMoConfig):
        super().__init__()
        classes = check_classes(config.classes)
        self.config = config
        self.reader = Reader(replace(config, dropout=0.0)).requires_grad_(not config.frozen)
        self.mix = make_mix(config)
        self.dropout = Dropout(config.dropout)
        self.hidden = nn.Linear(2 * config.projection_size, config.classifier_size)
        self.output = nn.Linear(2 * config.classifier_size, classes)

    def forward(self, batch: LabelledSpellings) -> Tensor:
        layers, _ = self.reader(batch.ids, batch.mask)
        vectors = self.dropout(self.mix(layers, batch.mask))  # (batch, position, 2 · projection)
        hidden = self.hidden(vectors).relu()  # (batch, position, classifier)
        words = batch.words  # the sentence's start and end are no words of the text
        pooled = [mean_of_words(hidden, words), maximum_of_words(hidden, words)]
        return self.output(self.dropout(torch.cat(pooled, dim=-1)))  # (batch, class)

    def embed(
        self, characters: Tensor, mask: Tensor, state: ELMoState | None = None
    ) -> tuple[list[Tensor], ELMoState]:
        """Each layer and their mix behind them, (batch, position, 2 · projection)."""
        layers, state = self.reader(characters, mask, state)
        return [*layers, self.mix(layers, mask)], state


class Reader(nn.Module):
    """Characters in, the vectors of every layer out: the language model without its softmax."""

    def __init__(self, config: ELMoConfig):
        super().__init__()
        self.residual = config.residual
        self.words = CharacterCNN(config)
        self.dropout = Dropout(config.dropout)
        self.layers = nn.ModuleList(
            ProjectedLSTM(
                config.projection_size,
                config.hidden_size,
                config.projection_size,
                cell_clip=config.cell_clip or None,
                projection_clip=config.projection_clip or None,
            )
            for _ in range(config.layers)
        )

    def forward(
        self, characters: Tensor, mask: Tensor, state: ELMoState | None = None
    ) -> tuple[list[Tensor], ELMoState]:
        """(batch, position, character) → (batch, position, 2 · projection) of each layer.

        The first is the words' own vectors, twice side by side; in the others forward stands before
        backward. mask (batch, position) is True at words, which stand at the front of their row.
        """
        vectors = self.words(characters)  # (batch, position, projection)
        both = vectors.expand(2, *vectors.shape)  # (direction, batch, position, projection)
        found, states, lengths = [both], [], mask.sum(dim=1)
        for index, layer in enumerate(self.layers):
            inputs = self.dropout(both)
            start = None if state is None else state.layers[index]
            both, end = layer(inputs, lengths, start)
            both = both + inputs if self.residual and index else both
            found.append(both)
            states.append(end)
        return [torch.cat([*layer], dim=-1) for layer in found], ELMoState(tuple(states))


class CharacterCNN(nn.Module):
    """y_i = max_t f(W_i · [e(c_t); …; e(c_{t+n_i−1})] + b_i),  x = P highway(highway(y)) + b

    Each filter looks for a stretch of n_i characters anywhere in the word.
    """

    def __init__(self, config: ELMoConfig):
        super().__init__()
        self.activation = ACTIVATIONS[config.activation]
        self.embedding = Embedding(CHARACTERS, config.character_size, padding_id=0)
        self.filters = nn.ModuleList(
            nn.Conv1d(config.character_size, count, width) for width, count in config.filters
        )
        self.widest = max(width for width, _ in config.filters)
        size = sum(count for _, count in config.filters)
        self.highways = nn.ModuleList(Highway(size) for _ in range(config.highway_layers))
        self.projection = nn.Linear(size, config.projection_size)

    def forward(self, characters: Tensor) -> Tensor:
        """(batch, position, character) → (batch, position, projection)."""
        # Each word once, however often it stands there: half of a text is a hundred words.
        words, places = characters.flatten(0, 1).unique(dim=0, return_inverse=True)
        vectors = self._read(words)  # (word, projection)
        return F.embedding(places, vectors).view(*characters.shape[:2], -1)

    def _read(self, words: Tensor) -> Tensor:
        """(word, character) → (word, projection)."""
        # Behind the longest word one stretch of filler is like another, and has the same maximum.
        written = (words > 0) & (words < FILLER)
        longest = int(written.sum(dim=1).max()) if len(words) else 0
        vectors = self.embedding(words[:, : longest + self.widest]).mT  # (word, size, character)
        found = [self.activation(each(vectors).amax(dim=-1)) for each in self.filters]
        hidden = torch.cat(found, dim=-1)  # (word, filters)
        for highway in self.highways:
            hidden = highway(hidden)
        return self.projection(hidden)


class Highway(nn.Module):
    """y = g ⊙ relu(W x + b) + (1 − g) ⊙ x,  g = σ(U x + b′)

    Srivastava, Greff & Schmidhuber (2015), section 2. ELMo's own code calls g the carry gate.
    """

    def __init__(self, size: int):
        super().__init__()
        self.transform, self.gate = nn.Linear(size, size), nn.Linear(size, size)
        nn.init.constant_(self.gate.bias, GATE_BIAS)

    def forward(self, vectors: Tensor) -> Tensor:
        return torch.lerp(vectors, self.transform(vectors).relu(), self.gate(vectors).sigmoid())


class ScalarMix(nn.Module):
    """γ Σ_j s_j h_j,  s = softmax(w)

    With `norm`, (h_j − μ_j) / σ_j in place of h_j, where μ and σ are over all numbers of a text's
    words: padding has no part in them, and neither have the texts beside it.

    Peters et al. (2018), equation 1 and section 3.2.
    """

    def __init__(self, layers: int, norm: bool = False):
        super().__init__()
        self.norm = norm
        self.scores = nn.Parameter(torch.zeros(layers))
        self.gamma = nn.Parameter(torch.ones(()))

    @property
    def weights(self) -> Tensor:
        """The share of each layer, (layer,)."""
        return self.scores.softmax(dim=0)

    def forward(self, layers: Sequence[Tensor], mask: Tensor) -> Tensor:
        """Each (batch, position, size) → the same."""
        if self.norm:
            layers = [normalise_text(layer, mask) for layer in layers]
        mixed = sum(weight * layer for weight, layer in zip(self.weights, layers, strict=True))
        return self.gamma * mixed


class OneLayer(nn.Module):
    """h_j of one layer j, in place of a mix: there is nothing to learn"""

    def __init__(self, layers: int, layer: int):
        super().__init__()
        self.layers, self.layer = layers, layer

    @property
    def weights(self) -> Tensor:
        """The share of each layer, (layer,)."""
        return F.one_hot(torch.tensor(self.layer), self.layers).float()

    def forward(self, layers: Sequence[Tensor], mask: Tensor) -> Tensor:
        return layers[self.layer]


def make_mix(config: ELMoConfig) -> ScalarMix | OneLayer:
    """The mix a config asks for, of all layers and the words' own vectors."""
    count = config.layers + 1
    if config.layer is not None:
        return OneLayer(count, config.layer)
    return ScalarMix(count, config.mix_norm)


def normalise_text(vectors: Tensor, mask: Tensor, eps: float = 1e-12) -> Tensor:
    """Mean 0 and variance 1 over all numbers of the words of a text; (batch, position, size)."""
    real = mask.unsqueeze(-1).to(vectors.dtype)
    count = (real.sum(dim=(1, 2), keepdim=True) * vectors.shape[-1]).clamp(min=1)
    mean = (vectors * real).sum(dim=(1, 2), keepdim=True) / count
    centred = (vectors - mean) * real
    variance = (centred * centred).sum(dim=(1, 2), keepdim=True) / count
    return centred * (variance + eps).rsqrt()
