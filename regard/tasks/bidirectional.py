"""Predict each word of a sentence twice: from the words before it, and from those behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from regard.config import Recipe
from regard.data.batches import Spellings
from regard.data.spelled import SpelledSentences, pad_spellings
from regard.layers.output import linear_cross_entropy
from regard.tasks.language_model import Lines, LineTask, likelihoods
from regard.tasks.objective import Objective, Outcome
from regard.tasks.resources import Resources
from regard.tasks.spelling import EmbedWords, spell_all
from regard.tasks.stepping import random_ids
from regard.tasks.task import Check
from regard.text.spelling import spell


class BidirectionalModelling(LineTask):
    """½ log Π p(w_t | w₁ … w_{t−1}) + ½ log Π p(w_t | w_{t+1} … w_T)

    Words are read as they are spelled, whether the vocabulary holds them or not; it is only what
    they are guessed among. A run without a vocabulary gives vectors, and guesses no words.
    """

    roles = ("unknown", "start", "end")
    metrics = ("perplexity", "loss", "bits")

    def __init__(self, recipe: Recipe):
        super().__init__(recipe)
        if recipe.data.unit == "character":
            raise ValueError(
                "data.unit ('character') has no sentences; it must be line or sentence"
            )

    def sizes(self, resources: Resources) -> dict[str, int]:
        return {} if resources.tokenizer is None else super().sizes(resources)

    def training_feed(self, corpus: Lines, resources: Resources) -> SpelledSentences:
        return self._feed(corpus, resources, self.recipe.seed)

    def scoring_feed(self, corpus: Lines, resources: Resources) -> SpelledSentences:
        return self._feed(corpus, resources, None)

    def _feed(self, corpus: Lines, resources: Resources, seed: int | None) -> SpelledSentences:
        if resources.tokenizer is None:
            raise ValueError("this run has no vocabulary: it embeds words, and guesses none")
        words = resources.words
        lines = [line for line in corpus if line.strip()]
        ids = [encoded.ids for encoded in words.encode_all(lines)]
        start, end = words.id_of_role("start"), words.id_of_role("end")
        tokens = self.recipe.training.tokens
        return SpelledSentences(list(spell_all(lines, words)), ids, start, end, tokens, seed)

    def objective(self, model: nn.Module) -> BothWays:
        return BothWays(model, self.recipe.training.label_smoothing)

    def verbs(self) -> dict[str, Any]:
        return {"embed": EmbedWords}

    def checks(self, model: Any, resources: Resources, seed: int) -> Iterator[Check]:
        rows = [random_ids(10_000, (1, n), seed + n)[0].tolist() for n in (3, 7, 12)]
        texts = [[spell(str(number)) for number in row] for row in rows]
        together = model.reader(*pad_spellings(texts))[0]
        alone = [model.reader(*pad_spellings([text]))[0] for text in texts]
        yield Check(
            "a batch of 3 = 3 batches of 1",
            torch.cat([together[-1][row, : len(text) + 2] for row, text in enumerate(texts)]),
            torch.cat([layers[-1][0] for layers in alone]),
        )
        characters, mask = pad_spellings(texts[-1:])
        begun, state = model.reader(characters[:, :5], mask[:, :5])
        rest, _ = model.reader(characters[:, 5:], mask[:, 5:], state)
        size = model.config.projection_size  # of the first half, which reads forward
        carried = torch.cat([begun[-1], rest[-1]], dim=1)[0, :, :size]
        yield Check("state carried on = read in one go", carried, alone[-1][-1][0, :, :size])


class BothWays(Objective[Spellings]):
    """forward = −Σ log p(word | words before it), backward = −Σ log p(word | words behind it)

    Sentence end is guessed forward and sentence start backward, so that both have as many words.
    """

    weights: ClassVar[Mapping[str, float]] = {"forward": 0.5, "backward": 0.5}

    def __init__(self, model: nn.Module, label_smoothing: float = 0.0):
        super().__init__(model)
        self.label_smoothing = label_smoothing

    def counts(self, batch: Spellings) -> dict[str, int]:
        return {"forward": batch.tokens, "backward": batch.tokens}

    def forward(self, batch: Spellings, state: Any = None) -> Outcome:
        ahead, back = self.model.features(batch)  # (batch, position, projection) each
        words, guessed = batch.targets, batch.mask[:, 1:]
        return Outcome(
            {
                "forward": self._loss(ahead[:, :-1], words[:, 1:], guessed),
                "backward": self._loss(back[:, 1:], words[:, :-1], guessed),
            }
        )

    def _loss(self, features: Tensor, words: Tensor, mask: Tensor) -> Tensor:
        output = self.model.output
        smoothing = self.label_smoothing if self.training else 0.0
        return linear_cross_entropy(features, output.weight, output.bias, words, mask, smoothing)

    def metrics(self, means: Mapping[str, float]) -> dict[str, float]:
        """The mean of both directions under the usual names, and the perplexity of each."""
        each = {f"{name}_perplexity": likelihoods(means[name])["perplexity"] for name in means}
        return {**likelihoods(self.loss(means)), **each}
