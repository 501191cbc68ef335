"""What a task is: everything between a recipe and an answer that depends on what is learned.

data → corpus → resources (words, labels) → sizes → model
corpus + resources → feed → objective → metrics
a run's model + resources → verbs, looks, checks
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from torch import Tensor, nn

from regard.attention import Look
from regard.config import Recipe
from regard.data.batches import Batch
from regard.data.corpora import FORMATS
from regard.data.feeds import Feed
from regard.metrics import Links
from regard.naming import suggest
from regard.tasks.answers import Answer, Candidate
from regard.tasks.objective import Objective
from regard.tasks.resources import Resources
from regard.tasks.scoring import score
from regard.text import Tokenizer

C = TypeVar("C")
"""The corpus of a task: lines, pairs, labelled texts, images, environments."""


class Verb(Protocol):
    """One thing a run can be asked to do, with its settings in hand.

    Whoever asks puts texts of like length together and hands them in as they were encoded.
    """

    def encode(self, text: str) -> Any:
        """What a user writes, as the model reads it; its `len` says how much there is to do."""

    def answer(self, encoded: list[Any], numbers: list[int]) -> list[list[Candidate]]:
        """The candidates for each, best first.

        What is sampled follows from the number of a text and not from the texts beside it.
        """


class Ordered(Protocol):
    """A verb for which it matters what came before."""

    in_order: bool
    """Whether texts are to be handed in one by one, as they follow each other."""


class Streaming(Protocol):
    """A verb whose answer can be told piece by piece."""

    def stream(self, encoded: Any) -> Iterator[str]:
        """The answer to one text, as it comes."""


class Looking(Protocol):
    """A verb whose answer can be looked at while it is decoded."""

    def look(self, text: str, number: int, output: str | None = None) -> list[Look]:
        """The looks of the best answer, which must be `output` if that is given."""


def check_output(output: str | None, found: str) -> None:
    """Refuse looks that are not those of the answer they are wanted for."""
    if output is not None and found != output:
        raise ValueError(
            f"output ({output!r}) came out as {found!r} when it was decoded again: in a batch of "
            "another size the last digits differ, and with weights 'int8' the first ones; ask for "
            "this text alone, with weights 'float32', to look at its answer"
        )


class Check(NamedTuple):
    """Two ways to the same numbers, for `verify`."""

    claim: str
    found: Tensor
    expected: Tensor


@dataclass(frozen=True, kw_only=True)
class NoSettings:
    """The [task] section of a task that has nothing to set."""


class Task(ABC, Generic[C]):
    """A kind of learning, bound to a recipe.

    `models.catalog` says which models can do it, `tasks.catalog` where it is written. Nothing
    else knows it by name.
    """

    config: ClassVar[type] = NoSettings
    """A frozen dataclass of the settings beside `kind` in [task]."""
    roles: tuple[str, ...] = ()
    """The special tokens it cannot do without, by what they are for."""
    feeds: ClassVar[tuple[str, ...]] = ("sentences",)
    """The values of training.feed it can do with, the first if a recipe has none."""
    formats: ClassVar[tuple[str, ...]] = FORMATS
    """The values of data.format it can read."""
    size_names: ClassVar[tuple[str, ...]] = ("vocabulary_size",)
    """What `sizes` tells a model, so that a recipe need not."""
    teaching_verb: ClassVar[str] = ""
    """What the runs of data.taught_by are asked to do; "" if it learns from data alone."""
    metrics: tuple[str, ...] = ("loss",)
    """What `evaluate` gives, the one that a run is known by first."""
    select: ClassVar[str] = "loss"
    """The metric that chooses the best weights, unless evaluation.select names another."""

    def __init__(self, recipe: Recipe):
        self.recipe = recipe
        settings = {key: value for key, value in recipe.task.items() if key != "kind"}
        self.settings: Any = self.config(**settings)
        self.feed_kind = recipe.training.feed or self.feeds[0]
        for key, value, known in (
            ("training.feed", self.feed_kind, self.feeds),
            ("data.format", recipe.data.format, self.formats),
        ):
            if value not in known:
                raise ValueError(
                    f"{key} ({value!r}) is nothing for {recipe.task['kind']}; "
                    f"{suggest(value, known)}"
                )

        if recipe.data.taught_by and not self.teaching_verb:
            raise ValueError(
                f"data.taught_by ({', '.join(recipe.data.taught_by)}) is nothing for "
                f"{recipe.task['kind']}: it learns from data alone"
            )

    # From data to batches

    @abstractmethod
    def read(self, split: str) -> C | None:
        """The examples of "train", "valid" or "test"; None where the recipe names none."""

    @abstractmethod
    def read_files(self, files: Sequence[str]) -> C:
        """The examples in these files, written as those of the recipe."""

    @abstractmethod
    def examples(self, examples: Iterable[Any]) -> C:
        """The same from what is in memory already."""

    def questions(self, corpus: C) -> list[str]:
        """What teachers are asked, with `teaching_verb`."""
        raise NotImplementedError

    def add_answers(self, corpus: C, answers: Sequence[str]) -> C:
        """The corpus, and the same questions with these answers behind it: those of one teacher
        after the other."""
        raise NotImplementedError

    @abstractmethod
    def prepare(self, train: C, tokenizer: Tokenizer | None) -> Resources:
        """Words and labels, from what is to be learned from; a given tokenizer is taken as it
        is."""

    def sizes(self, resources: Resources) -> dict[str, int]:
        """The sizes of a model that follow from the data, as far as they are known."""
        words = resources.tokenizer
        return {} if words is None else {"vocabulary_size": words.size}

    def initialise(self, model: nn.Module, resources: Resources) -> None:
        """Give a new model what it starts from beside random numbers, given word vectors say."""

    @abstractmethod
    def training_feed(self, corpus: C, resources: Resources) -> Feed[Batch]:
        """Batches to learn from, in the order of the recipe's seed."""

    @abstractmethod
    def scoring_feed(self, corpus: C, resources: Resources) -> Feed[Batch]:
        """Batches in which every target stands once."""

    # From batches to numbers

    @abstractmethod
    def objective(self, model: nn.Module) -> Objective[Any]:
        """The model with what is to be made small."""

    def evaluate(
        self,
        objective: Objective[Any],
        feed: Feed[Batch],
        resources: Resources,
        names: Sequence[str],
        wrapped: Any = None,
    ) -> dict[str, Any]:
        """At least the metrics of these names over a feed, with `tokens` and `seconds`.

        What the objective knows comes for nothing; a task adds what is dearer if it is named.
        """
        return score(objective, feed, wrapped).values

    def observe(self, model: Any, feed: Feed[Batch]) -> dict[str, float]:
        """What else is worth telling about a model on a feed, beside its metrics."""
        return {}

    def story(self, name: str) -> dict[str, str]:
        """What a signature says about how a metric was made, beside recipe, data and seed."""
        return {}

    def fit(self, model: Any, feed: Feed[Batch], resources: Resources) -> None:
        """Train a model that learns without gradients."""
        raise ValueError(f"{self.recipe.model['name']} has no gradients to learn by")

    def evaluate_fitted(self, model: Any, feed: Feed[Batch]) -> dict[str, Any]:
        """The metrics of a model that learned without gradients."""
        raise ValueError(f"{self.recipe.model['name']} has no gradients to learn by")

    # A run in use

    def verbs(self) -> dict[str, Any]:
        """What a run can be asked to do: name → a `Verb` of (model, resources, settings)."""
        return {}

    def logits(self, model: nn.Module, ids: Tensor) -> Tensor:
        """(batch, position) ids → (batch, position, vocabulary), of models over ids."""
        raise ValueError(f"logits: {self.recipe.task['kind']} has none for each id")

    def look(
        self, model: nn.Module, resources: Resources, text: str, target: str | None = None
    ) -> list[Look]:
        """Where the model looks while it reads the text, or while it says the target."""
        raise ValueError(f"{self.recipe.task['kind']} has nothing to look at")

    def gold_pairs(self, split: str) -> tuple[list[tuple[str, str]], list[Links] | None]:
        """Pairs of texts whose words can be linked, and the right links, if the data know."""
        raise ValueError(f"{self.recipe.task['kind']} has no two sides to align")

    def word_weights(
        self,
        model: nn.Module,
        resources: Resources,
        pairs: Sequence[tuple[str, str]],
        path: str | None = None,
    ) -> Iterator[Tensor]:
        """How much each word of a target looks at each word of its source, (target, source), pair
        by pair: in one attention, or in the mean of all between the two."""
        raise ValueError(f"{self.recipe.task['kind']} has no two sides to align")

    def look_at(self, model: nn.Module, resources: Resources, answer: Answer) -> list[Look]:
        """Where the model looked while it gave an answer.

        What was decoded is decoded again under watch, with the same settings and draws, so that the
        weights are those of the surviving hypothesis. To keep them from the first time on would
        take memory for every answer that nobody looks at.
        """
        verb = self.verbs().get(answer.verb)
        if verb is None or not hasattr(verb, "look"):
            return self.look(model, resources, answer.input)
        action: Looking = verb(self, model, resources, **answer.settings)
        return action.look(answer.input, answer.number, answer.output)

    def checks(self, model: Any, resources: Resources, seed: int) -> Iterator[Check]:
        """Two ways to the same numbers each: steps and whole texts, batches and single rows."""
        return iter(())
