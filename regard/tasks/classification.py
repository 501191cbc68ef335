"""A label for each text; from models of others also several, or numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn
from torch.nn import functional as F

from regard.attention import Label, Look, watch
from regard.config import Recipe
from regard.data import corpora
from regard.data.batches import LabelledTexts
from regard.data.config import Files
from regard.data.feeds import Feed
from regard.data.files import find_file, find_one
from regard.data.splits import hold_out
from regard.data.vectors import read_vectors
from regard.metrics import f1
from regard.models import catalog
from regard.naming import suggest
from regard.tasks.answers import Candidate
from regard.tasks.objective import Objective, Outcome, Sum
from regard.tasks.reading import READINGS, Reading
from regard.tasks.resources import Resources
from regard.tasks.scoring import score
from regard.tasks.stepping import random_ids
from regard.tasks.task import Check, Task
from regard.text import Tokenizer

Example = tuple[str, str]  # text, label
LabelledCorpus = Sequence[Example]


@dataclass(frozen=True, kw_only=True)
class ClassificationSettings:
    """[task]: what the logits say. Only "one" is learned here."""

    labels: Literal["one", "any", "numbers"] = "one"  # of them is right; any may be; all numbers


class Classification(Task[LabelledCorpus]):
    """p(label | text)

    The classes are the labels of the training data, kept in the run folder as `labels.json`.
    """

    config = ClassificationSettings
    size_names = ("vocabulary_size", "classes")
    metrics = ("accuracy", "f1", "loss")
    select = "accuracy"

    def __init__(self, recipe: Recipe):
        super().__init__(recipe)
        self.roles = self.reading.roles

    @property
    def reading(self) -> Reading:
        """How the model of the recipe wants its texts: as whole rows unless it says otherwise."""
        model = catalog.entry(self.recipe.model["name"]).model(self.recipe.task["kind"])
        return READINGS[getattr(model, "reads", LabelledTexts)]

    def read(self, split: str) -> LabelledCorpus | None:
        data = self.recipe.data
        if data.train is None:
            raise ValueError("data.train is missing: which texts and labels are to be learned?")
        if split != "test" and data.valid is None and data.valid_share:
            return hold_out(self._read(data.train), data.valid_share)[split == "valid"]
        files: Files = getattr(data, split)
        return None if files is None else self._read(files)

    def read_files(self, files: Sequence[str]) -> LabelledCorpus:
        return self._read(list(files))

    def _read(self, files: Files) -> LabelledCorpus:
        data = self.recipe.data
        path = find_one(files, data, "classification")
        return list(corpora.read_labelled(path, data.format, data.columns))

    def examples(self, examples: Iterable[Any]) -> LabelledCorpus:
        """(text, label) pairs of strings."""
        return [(text, str(label)) for text, label in examples]

    def prepare(self, train: LabelledCorpus, tokenizer: Tokenizer | None) -> Resources:
        pieces = (piece for text, _ in train for piece in self.reading.pieces(text))
        words = tokenizer or Tokenizer.train(pieces, self.recipe.text, self.roles)
        labels = sort_labels({label for _, label in train})
        if len(labels) < 2:
            raise ValueError(
                f"data.train has {len(labels)} label ({', '.join(labels)}): nothing to tell apart"
            )
        return Resources(words, labels)

    def sizes(self, resources: Resources) -> dict[str, int]:
        return {**super().sizes(resources), "classes": len(resources.labels)}

    def initialise(self, model: nn.Module, resources: Resources) -> None:
        """Word vectors from data.vectors, for the words they know."""
        data = self.recipe.data
        if data.vectors is None:
            return
        table = getattr(getattr(model, "embedding", None), "weight", None)
        if table is None:
            raise ValueError(f"data.vectors: {self.recipe.model['name']} has no table of vectors")
        words = resources.words
        read_vectors(find_file(data.vectors, data), words.tokens_of(range(words.size)), table)

    def training_feed(self, corpus: LabelledCorpus, resources: Resources) -> Feed[LabelledTexts]:
        return self._feed(corpus, resources, self.recipe.seed)

    def scoring_feed(self, corpus: LabelledCorpus, resources: Resources) -> Feed[LabelledTexts]:
        return self._feed(corpus, resources, None)

    def _feed(
        self, corpus: LabelledCorpus, resources: Resources, seed: int | None
    ) -> Feed[LabelledTexts]:
        words, numbers = resources.words, {name: i for i, name in enumerate(resources.labels)}
        for place, (_, label) in enumerate(corpus):
            if label not in numbers:
                hint = suggest(label, resources.labels)
                raise ValueError(f"example {place + 1}: label ({label!r}) is not known; {hint}")
        texts = self.reading.read_all((text for text, _ in corpus), words)
        labels = [numbers[label] for _, label in corpus]
        tokens = self.recipe.training.tokens
        return self.reading.feed(texts, labels, tokens, seed, words.id_of_role("pad"))

    def objective(self, model: nn.Module) -> ClassLikelihood:
        if self.settings.labels != "one":
            raise ValueError(
                f"task.labels ({self.settings.labels!r}) must be 'one' to be learned or judged; "
                "such a model classifies, and is looked into"
            )
        return ClassLikelihood(model, self.recipe.training.label_smoothing)

    def evaluate(
        self,
        objective: Objective[Any],
        feed: Feed[Any],
        resources: Resources,
        names: Sequence[str],
        wrapped: Any = None,
    ) -> dict[str, Any]:
        values, predictions = score(objective, feed, wrapped)
        truth = [feed.batch(0, index).labels for index in range(feed.batches(0))]
        macro = f1(torch.cat(predictions), torch.cat(truth))
        return {"accuracy": values["accuracy"], "f1": macro.value, **values}

    def observe(self, model: Any, feed: Feed[Any]) -> dict[str, float]:
        return self.reading.observe(model)

    def verbs(self) -> dict[str, Any]:
        return {"classify": Classify, **self.reading.verbs}

    def look(
        self, model: nn.Module, resources: Resources, text: str, target: str | None = None
    ) -> list[Look]:
        """What the class was read from; rows are words, or the class where it reads them all."""
        words, reading = resources.words, self.reading
        if target is not None:
            text = reading.join_pair(text, target)
        ids = reading.read(text, words)
        if not len(ids):
            raise ValueError(f"text ({text!r}) has no tokens to look at")
        with watch(model) as seen:
            logits = model(reading.collate([ids], words.id_of_role("pad")))
        answer = Label(resources.labels[int(logits[0].argmax())])
        return reading.make_looks(model, seen, text, words, answer)

    def checks(self, model: Any, resources: Resources, seed: int) -> Iterator[Check]:
        reading, pad, size = self.reading, resources.filler, resources.size_of(model)
        rows = [random_ids(size, (1, n), seed + n)[0].tolist() for n in (3, 7, 12)]
        texts = [reading.group(ids) for ids in rows]
        alone = torch.cat([model(reading.collate([text], pad)) for text in texts])
        yield Check("a batch of 3 = 3 batches of 1", model(reading.collate(texts, pad)), alone)


class ClassLikelihood(Objective[LabelledTexts]):
    """loss = −Σ log p(label | text), and the share of labels that are the likeliest"""

    def __init__(self, model: nn.Module, label_smoothing: float = 0.0):
        super().__init__(model)
        self.label_smoothing = label_smoothing

    def counts(self, batch: LabelledTexts) -> dict[str, int]:
        return {"loss": int(batch.loss_mask.sum())}

    def forward(self, batch: LabelledTexts, state: Any = None) -> Outcome:
        logits = self.model(batch)  # (batch, class)
        counted = batch.loss_mask
        smoothing = self.label_smoothing if self.training else 0.0
        loss = F.cross_entropy(
            logits[counted], batch.labels[counted], label_smoothing=smoothing, reduction="sum"
        )
        predictions = logits.argmax(dim=-1)  # (batch,)
        right = ((predictions == batch.labels) & counted).sum()
        accuracy = Sum(right, int(counted.sum()))
        return Outcome({"loss": loss}, {"accuracy": accuracy}, predictions=predictions)


class Classify:
    """The label of a text; `n_best` gives the likeliest few.

    Where logits are numbers, all of them are the answer, in the order of the labels.
    """

    def __init__(self, task: Classification, model: Any, resources: Resources, n_best: Any = None):
        if n_best is not None and (type(n_best) is not int or n_best < 1):
            raise ValueError(f"n_best ({n_best!r}) must be a whole number, 1 or more")
        self.kind: str = task.settings.labels
        if self.kind == "numbers" and n_best is not None:
            raise ValueError(f"n_best ({n_best}) is for labels; the answer here is all numbers")
        self.model, self.resources, self.reading = model, resources, task.reading
        self.n_best = min(n_best or 1, len(resources.labels))

    def encode(self, text: str) -> Any:
        return self.reading.read(text, self.resources.words)

    @torch.no_grad()
    def answer(self, encoded: list[Any], numbers: list[int]) -> list[list[Candidate]]:
        """The likeliest labels of each with their probabilities; a text without words has none."""
        found: list[list[Candidate]] = [[Candidate("", 0.0)] for _ in encoded]
        places = [place for place, ids in enumerate(encoded) if len(ids)]
        if places:
            pad = self.resources.words.id_of_role("pad")
            batch = self.reading.collate([encoded[i] for i in places], pad)
            for place, logits in zip(places, self.model(batch), strict=True):
                found[place] = self._tell(logits)
        return found

    def _tell(self, logits: torch.Tensor) -> list[Candidate]:
        """What the logits of one text, (class,), say."""
        if self.kind == "numbers":
            return [Candidate(logits.tolist(), 0.0)]
        odds = logits.softmax(dim=-1) if self.kind == "one" else logits.sigmoid()
        best = odds.topk(self.n_best)
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [Candidate(self.resources.labels[number], share) for number, share in pairs]


def sort_labels(labels: set[str]) -> tuple[str, ...]:
    """Labels in the order of their numbers: 2 before 10, and words by their letters."""
    try:
        return tuple(sorted(labels, key=int))
    except ValueError:
        return tuple(sorted(labels))
