"""A trained model with what its numbers stand for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.checkpoints.reading import MANIFEST
from regard.config import Recipe
from regard.decoding import DecodingConfig
from regard.looking import Looks
from regard.naming import suggest
from regard.products import use_torch_products
from regard.tasks import Answer, Resources, Task, Verb
from regard.tasks.answering import BoundVerb
from regard.tasks.scoring import seconds_since
from regard.tasks.senses import Sense, list_senses
from regard.text import Tokenizer

SPLITS = ("train", "valid", "test")


class Run:
    """A run folder in use: `regard.load("runs/shakespeare-char")`."""

    def __init__(
        self, folder: Path, recipe: Recipe, task: Task[Any], resources: Resources, model: Any
    ):
        self.folder, self.recipe, self.task = folder, recipe, task
        self.resources, self.model = resources, model

    def __repr__(self) -> str:
        return f"Run({self.folder}, {self.recipe.model['name']})"

    @property
    def tokenizer(self) -> Tokenizer:
        """Its words; a run that reads no text has none."""
        return self.resources.words

    @property
    def has_manifest(self) -> bool:
        """Whether its files were checked by their hashes; a Hugging Face folder has none."""
        return (self.folder / MANIFEST).is_file()

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes it tells apart, if it does."""
        return self.resources.labels

    # To use it

    def generate(self, prompts: Sequence[str] | str = "", **settings: Any) -> list[Answer]:
        """Continue each prompt; settings are those of the [decoding] section.

        A Backpack also takes `senses={"sick": {3: 0.0, 1: ("ill", 5)}}`: in this answer sense 3 of
        the word is silent, and sense 1 is that of another.
        """
        return list(self.answers("generate", _as_list(prompts), **settings))

    def translate(self, texts: Sequence[str] | str, **settings: Any) -> list[Answer]:
        """Translate each text; settings are those of the [decoding] section."""
        return list(self.answers("translate", _as_list(texts), **settings))

    def classify(self, texts: Sequence[str] | str, **settings: Any) -> list[Answer]:
        """The label of each text and its probability; `n_best` gives the likeliest few."""
        return list(self.answers("classify", _as_list(texts), **settings))

    def fill(self, texts: Sequence[str] | str, **settings: Any) -> list[Answer]:
        """The likeliest words in place of each mask of a text; `n_best` of them, 5 by default."""
        return list(self.answers("fill", _as_list(texts), **settings))

    def embed(self, texts: Sequence[str] | str, **settings: Any) -> list[Answer]:
        """The vector of each text, as a list of numbers, or those of its words; settings are those
        of the model's verb: `pooling`, `layer`, `stateful`."""
        return list(self.answers("embed", _as_list(texts), **settings))

    def answers(
        self,
        verb: str,
        texts: Sequence[str],
        *,
        numbers: Sequence[int] | None = None,
        **settings: Any,
    ) -> Iterator[Answer]:
        """Answer texts in their order, each as soon as it and those before it are ready.

        Texts of like length go together, about 4,096 tokens at once, or as many as the verb says.
        What is sampled follows from the number of a text (0, 1, … if not given) and not from the
        texts beside it.
        """
        return self.bind(verb, **settings).answers(texts, numbers)

    def bind(self, verb: str, **settings: Any) -> BoundVerb:
        """The verb with its settings in hand, for texts that come group by group."""
        return BoundVerb(self.verb(verb, **settings), verb, settings)

    def stream(self, prompt: str = "", verb: str = "generate", **settings: Any) -> Iterator[str]:
        """The answer to one text, piece by piece as it comes."""
        action: Any = self.verb(verb, **settings)
        if not hasattr(action, "stream"):
            raise ValueError(f"{verb} cannot be streamed: its answer comes as a whole")
        return action.stream(action.encode(prompt))

    def verb(self, name: str, **settings: Any) -> Verb:
        """What the run does under this name, with its settings in hand."""
        verbs = self.task.verbs()
        if name not in verbs:
            kind, able = self.recipe.task["kind"], ", ".join(verbs) or "nothing of the kind"
            raise ValueError(f"{name}: {self.folder} is a run of {kind}, which does {able}")
        check_settings(name, verbs[name], settings)
        action: Verb = verbs[name](self.task, self.model, self.resources, **settings)
        return action

    # To judge it

    def evaluate(
        self,
        split: str = "valid",
        *,
        files: Sequence[str | Path] | str | Path | None = None,
        examples: Iterable[Any] | None = None,
    ) -> dict[str, Any]:
        """The metrics of the task on a split of the recipe's data, on files, or on examples.

        Examples are what the task reads from a file: lines, (source, target) or (text, label).
        Every target counts once. The signature says how the first number was made.
        """
        started = time.monotonic()
        corpus, name = self._corpus(split, files, examples)
        feed = self.task.scoring_feed(corpus, self.resources)
        if isinstance(self.model, nn.Module):
            objective = self.task.objective(self.model)
            values = self.task.evaluate(objective, feed, self.resources, self.task.metrics)
            values |= self.task.observe(self.model, feed)
        else:
            values = self.task.evaluate_fitted(self.model, feed)
        values["seconds"] = seconds_since(started)
        return {**values, "signature": self._signature(values, name)}

    def _corpus(
        self,
        split: str,
        files: Sequence[str | Path] | str | Path | None,
        examples: Iterable[Any] | None,
    ) -> tuple[Any, str]:
        """What to score on, and what a signature calls it."""
        if examples is not None:
            return self.task.examples(examples), "examples"
        if files:
            named = [files] if isinstance(files, str | Path) else files
            return self.task.read_files([str(file) for file in named]), "--data"
        if split not in SPLITS:
            raise ValueError(f"split ({split!r}) is not known; {suggest(split, SPLITS)}")
        data = self.recipe.data
        try:
            corpus = self.task.read(split)
        except ValueError:
            if data.train or data.valid or data.test or data.generator:
                raise
            corpus = None  # as in a folder of others
        if corpus is None:
            raise ValueError(f"there is no data.{split} to evaluate on; --data names files")
        return corpus, split

    def _signature(self, values: dict[str, Any], data: str) -> str:
        """A number with its story: `perplexity 141.2 | recipe:ptb-kn5 | data:valid | seed:1`."""
        name = next((name for name in self.task.metrics if name in values), next(iter(values)))
        parts = [f"{name} {values[name]:.4g}", f"recipe:{self.recipe.name}", f"data:{data}"]
        parts += [f"{key}:{value}" for key, value in self.task.story(name).items()]
        return " | ".join([*parts, f"seed:{self.recipe.seed}"])

    def perplexity(self, text: str) -> float:
        """exp of the mean loss of the words of one text."""
        values = self.evaluate(examples=[text])
        if "perplexity" not in values:
            raise ValueError(
                f"perplexity: {self.folder} has none; its metrics are {', '.join(values)}"
            )
        return float(values["perplexity"])

    @torch.no_grad()
    def logits(self, ids: Tensor) -> Tensor:
        """(batch, position) ids → (batch, position, vocabulary), by torch's own products: what
        others compute with the same weights, to the last digits."""
        self._expect_module("logits")
        with use_torch_products():
            return self.task.logits(self.model, ids)

    # To look inside

    @torch.no_grad()
    def look(self, text: str, target: str | None = None) -> Looks:
        """Where the model looks while it reads the text, or while it says the target."""
        self._expect_module("look")
        return self._looks(self.task.look(self.model, self.resources, text, target))

    @torch.no_grad()
    def look_at(self, answer: Answer) -> Looks:
        """Where the model looked while it gave this answer, from the decoding itself.

        It is decoded again under watch, with the settings and the draws it was made with.
        """
        self._expect_module("look")
        return self._looks(self.task.look_at(self.model, self.resources, answer))

    def _looks(self, looks: list[Any]) -> Looks:
        if not looks:
            raise ValueError(f"{self.recipe.model['name']} has no attention to look at")
        return Looks(looks)

    def senses(self, word: str, top: int = 10) -> list[Sense]:
        """What each sense of a word predicts: the words whose logits it raises and lowers most."""
        return list_senses(self.model, self.tokenizer, word, top)

    def decoding(self, **settings: Any) -> DecodingConfig:
        """The recipe's own, with these settings in place of its."""
        return self.recipe.decoding.with_settings(**settings)

    def _expect_module(self, what: str) -> None:
        if not isinstance(self.model, nn.Module):
            raise ValueError(f"{what} needs a neural model; {self.folder} counts n-grams")


def check_settings(name: str, verb: Callable[..., Verb], settings: Mapping[str, Any]) -> None:
    """Refuse settings that a verb does not have."""
    parameters = list(signature(verb).parameters.values())[3:]  # behind task, model and resources
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return
    known = [each.name for each in parameters]
    for setting in settings:
        if setting not in known:
            hint = suggest(setting, known) if known else "it has none"
            raise ValueError(f"{name} has no setting {setting!r} here; {hint}")


def _as_list(texts: Sequence[str] | str) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)
