"""A Backpack: every word has several senses, and a text is the weighted sum of those of its words.

C(w)_ℓ = the ℓ-th sense vector of word w, from the word alone                  ℓ = 1 … k
α_ℓij = softmax_j(h_i Q_ℓ · h_j K_ℓ / √(d/k)),  j ≤ i,  h = Transformer(words)
o_i = Σ_ℓ Σ_j α_ℓij C(w_j)_ℓ
p(next word) = softmax(E o_i)

All that the context decides is how much of each sense is taken, never less than none. The logits
are linear in the senses: sense ℓ of a word always speaks for the same next words, E C(w)_ℓ, louder
or softer, and whoever changes it changes what the model says by just so much.

Hewitt, Thickstun, Manning & Liang (2023), "Backpack language models", sections 2 and 3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from regard.attention import Attention, KeyValueCache, Mask, ScaledDot
from regard.layers import Dropout, Embedding, FeedForward, LayerNorm
from regard.models.checks import check_at_least
from regard.models.gpt2 import GPT2, GPT2Config
from regard.products import Linear

SenseChange = float | tuple[int, int]
"""What becomes of a sense: it is multiplied by a number, or is (word, sense) of another word."""
SENSE_SCALE = 5.0
"""How many times as large as other weights the last ones of the senses start. No norm behind them
brings what they say to size, and quiet ones are slow to learn to speak."""


@dataclass(frozen=True, kw_only=True)
class BackpackConfig(GPT2Config):
    """Hewitt et al. (2023), section 4.1. The defaults are the largest model; presets are the three
    of the paper, and one for a laptop."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "laptop": {"layers": 3, "model_size": 128, "heads": 4, "senses": 8, "longest": 128},
        "micro": {"layers": 6, "model_size": 384, "heads": 6},
        "mini": {"layers": 8, "model_size": 640, "heads": 8},
        "small": {},
    }

    longest: int = 512
    senses: int = 16  # of each word

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, self, "senses")
        if self.model_size % self.senses:
            raise ValueError(
                f"model_size ({self.model_size}) must be a multiple of senses ({self.senses}): "
                "the weights of each come from an equal share"
            )


class Backpack(GPT2):
    """A GPT-2 reads the text; what it has read only weighs the senses of the words."""

    def __init__(self, config: BackpackConfig):
        super().__init__(config)
        self.senses = Senses(self.embedding, config)
        self.sense_weights = SenseWeights(config)
        self._tie_and_initialise()
        nn.init.normal_(self.senses.output.contract.weight, std=SENSE_SCALE * config.init_std)
        self.sense_weights.initialise()

    def _compute_features(
        self,
        ids: Tensor,
        positions: Tensor | slice,
        mask: Mask,
        caches: Sequence[KeyValueCache | None] | None = None,
    ) -> Tensor:
        """(batch, position) → (batch, position, model), o of each word."""
        *below, cache = caches or [None] * (len(self.layers) + 1)
        context = super()._compute_features(ids, positions, mask, below)
        return self.sense_weights(context, self.senses(ids), mask, cache)

    def _make_caches(self) -> tuple[KeyValueCache, ...]:
        return (*super()._make_caches(), KeyValueCache())

    def with_senses(self, changes: Mapping[int, Mapping[int, SenseChange]]) -> Backpack:
        """The same model with other senses of some words; this one stays as it is.

        model.with_senses({sick: {3: 0.0, 1: (ill, 5)}})  # sense 3 is silent, sense 1 is ill's 5

        Weights are shared. Senses are taken from the model as it is now, so that two words can
        exchange theirs.
        """
        edited = copy(self)
        edited._modules = {**self._modules, "senses": EditedSenses(self.senses, changes)}
        return edited


class Senses(nn.Module):
    """r = x + norm(x),  y = r + FF₁(norm(r)),  C(w) = FF₂(norm(y)) in k pieces,  x = E[w]

    Neither context nor position comes in. The network is that of the paper's own code; its
    appendix A has the sizes.
    """

    def __init__(self, embedding: Embedding, config: BackpackConfig):
        super().__init__()
        size, hidden = config.model_size, 4 * config.model_size
        self.count = config.senses
        self.embedding = embedding  # the model's own
        self.input_norm, self.feedforward_norm, self.output_norm = (
            LayerNorm(size, config.eps) for _ in range(3)
        )
        self.feedforward = FeedForward(size, hidden, config.activation)
        self.output = FeedForward(size, hidden, config.activation, output_size=self.count * size)
        self.dropout = Dropout(config.dropout)

    def forward(self, ids: Tensor) -> Tensor:
        """(…) words → (…, sense, model)."""
        # The same wherever a word stands, so that each word is worked out once.
        words, places = ids.unique(return_inverse=True)
        x = self.dropout(self.embedding(words))  # (word, model)
        x = x + self.dropout(self.input_norm(x))
        x = x + self.dropout(self.feedforward(self.feedforward_norm(x)))
        senses = self.dropout(self.output(self.output_norm(x)))  # (word, sense · model)
        return senses[places].unflatten(-1, (self.count, -1))


class SenseWeights(nn.Module):
    """o_i = Σ_ℓ Σ_j α_ℓij C(w_j)_ℓ,  α_ℓ = softmax(h Q_ℓ (h K_ℓ)ᵀ / √(d/k))

    A head for each sense: its queries and keys are of the context, its values the senses as they
    are. Section 3.1, equations 6 to 8.
    """

    def __init__(self, config: BackpackConfig):
        super().__init__()
        self.senses = config.senses
        self.projection = Linear(config.model_size, 2 * config.model_size)
        self.attention = Attention(ScaledDot(), sides=("words", "senses of words"))

    def initialise(self) -> None:
        """Have every word look at itself first: keys start as the queries. Were all words weighed
        alike, what the last word said would be lost among the others for hundreds of steps."""
        queries, keys = self.projection.weight.chunk(2)
        nn.init.normal_(queries, std=queries.shape[1] ** -0.5)
        with torch.no_grad():
            keys.copy_(queries)

    def forward(
        self, context: Tensor, senses: Tensor, mask: Mask, cache: KeyValueCache | None = None
    ) -> Tensor:
        """context (batch, position, model), senses (batch, position, sense, model) → (batch,
        position, model)."""
        split = self.projection(context).unflatten(-1, (2 * self.senses, -1)).transpose(1, 2)
        queries, keys = split.chunk(2, dim=1)  # (batch, sense, position, model / senses)
        values = senses.transpose(1, 2)  # (batch, sense, position, model)
        if cache is not None:
            keys, values = cache.append(keys, values)
        return self.attention(queries, keys, values, mask).context.sum(dim=1)


class EditedSenses(nn.Module):
    """Senses of which some are scaled, or taken from another word."""

    def __init__(
        self, senses: Senses | EditedSenses, changes: Mapping[int, Mapping[int, SenseChange]]
    ):
        super().__init__()
        self.senses = senses
        self.count: int = senses.count
        self.edited = {word: self._edit(word, own) for word, own in changes.items()}

    def forward(self, ids: Tensor) -> Tensor:
        """(…) words → (…, sense, model)."""
        senses = self.senses(ids)
        for word, edited in self.edited.items():
            senses = torch.where((ids == word)[..., None, None], edited, senses)
        return senses

    @torch.no_grad()
    def _edit(self, word: int, changes: Mapping[int, SenseChange]) -> Tensor:
        """(sense, model)"""
        edited = self._senses_of(word).clone()
        for sense, change in changes.items():
            self._check(sense)
            if isinstance(change, tuple):
                other, source = change
                self._check(source)
                edited[sense] = self._senses_of(other)[source]
            elif math.isfinite(change):
                edited[sense] *= change
            else:
                raise ValueError(f"factor ({change}) must be a finite number")
        return edited

    def _senses_of(self, word: int) -> Tensor:
        device = next(self.senses.parameters()).device
        return self.senses(torch.tensor(word, device=device))

    def _check(self, sense: int) -> None:
        if not 0 <= sense < self.count:
            raise ValueError(f"sense ({sense}) must be from 0 to {self.count - 1}")
