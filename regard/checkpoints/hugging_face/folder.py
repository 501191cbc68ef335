"""A Hugging Face folder as it is: which model, with which settings, weights and words."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from regard.checkpoints.hugging_face.catalog import TABLES, architecture_names
from regard.checkpoints.hugging_face.files import CONFIG, MAX_CONFIG_BYTES, Files
from regard.checkpoints.hugging_face.table import Architecture, Settings, Table
from regard.checkpoints.hugging_face.words import read_tokenizer
from regard.checkpoints.weights import build_from, drop_tied, fill_tied
from regard.text import Tokenizer

MAX_LABELS = 1_000_000
PROBLEMS = {
    "single_label_classification": "one",
    "multi_label_classification": "any",
    "regression": "numbers",
}
"""What the logits of a classifier say, as a config.json and as [task] labels have it."""


class HuggingFaceFolder:
    """What is in a folder that transformers saved, in our words; nothing in it is run.

    folder = HuggingFaceFolder(Path("models/gpt2"))
    folder.table.model, folder.settings, folder.tokenizer
    """

    def __init__(self, path: Path):
        self.path, self.files = path, Files(path)
        self.config = self.files.read_json(CONFIG, MAX_CONFIG_BYTES)
        self.table, self.architecture = find_table(self.config, path / CONFIG)

    @staticmethod
    def is_at(path: Path) -> bool:
        """Whether a folder may be one."""
        return (path / CONFIG).is_file()

    @property
    def task(self) -> dict[str, str]:
        """The [task] section of a recipe: the kind of task that the model does here, and what its
        logits say."""
        task = {"kind": self.architecture.task}
        if self.architecture.labelled:
            task["labels"] = read_problem(self.config, len(self.labels), self.path / CONFIG)
        return task

    @cached_property
    def tokenizer(self) -> Tokenizer | None:
        """Its words, if it brings them."""
        return read_tokenizer(self.files)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The names of its classes, if it tells some apart."""
        return read_labels(self.config, self.path / CONFIG) if self.architecture.labelled else ()

    @property
    def settings(self) -> Settings:
        """The settings of our model, its sizes among them."""
        return self._content[0]

    @property
    def model_section(self) -> Settings:
        """The [model] section of a recipe; a size that its words have anyway is left out."""
        settings = {"name": self.table.model, **self.settings}
        words = self.tokenizer
        if words is not None and words.size == settings["vocabulary_size"]:
            del settings["vocabulary_size"]
        return settings

    def load(self, make: Callable[[], nn.Module]) -> nn.Module:
        """The model that `make` builds from these settings, with the weights of the folder."""
        tensors = self._content[1]

        def fit(skeleton: nn.Module) -> dict[str, Tensor]:
            wanted = drop_tied(skeleton.state_dict(), skeleton)
            self.table.check(tensors, wanted, str(self.path))
            return self.weights(skeleton)

        return build_from(make, fit, len(tensors), str(self.path))

    def weights(self, model: nn.Module) -> dict[str, Tensor]:
        """The weights by the names of a model of ours, as far as they are there."""
        wanted = drop_tied(model.state_dict(), model)
        return fill_tied(self.table.convert(self._content[1], wanted), model)

    @cached_property
    def _content(self) -> tuple[Settings, dict[str, Tensor]]:
        """Settings in our words, and tensors by the names of the table."""
        try:
            settings = self.table.read_settings(self.config)
        except ValueError as error:
            raise ValueError(f"{self.path / CONFIG}: {error}") from None
        tensors = self.files.tensors()
        try:
            tensors = self.table.read_names(tensors)
        except ValueError as error:
            raise ValueError(f"{self.path}: {error}") from None
        settings |= self.table.find_heads(tensors)
        return self.table.untie({**settings, **self.architecture.settings}, tensors)


def find_table(config: dict[str, Any], path: Path) -> tuple[Table, Architecture]:
    """The table of the model that a config.json names, and which of its classes it is."""
    named, kind = config.get("architectures"), config.get("model_type")
    for table in TABLES:
        for name in named if isinstance(named, list) and named else [None]:
            found = table.find(name) if name or kind == table.model_type else None
            if found is not None:
                return table, found
    ours = ", ".join(architecture_names())
    if not named and kind is None:
        raise ValueError(f"{path}: neither architectures nor model_type names one of ours: {ours}")
    told = f"architectures ({str(named)[:80]})" if named else f"model_type ({str(kind)[:80]!r})"
    raise ValueError(f"{path}: {told} is none that regard has: {ours}")


def read_labels(config: dict[str, Any], path: Path) -> tuple[str, ...]:
    """The classes that a config.json names: `id2label`, else so many as `num_labels` says."""
    names = config.get("id2label")
    if names is None:
        count = config.get("num_labels", 2)
        if type(count) is not int or not 0 < count <= MAX_LABELS:
            raise ValueError(
                f"{path}: num_labels ({str(count)[:80]}) must be from 1 to {MAX_LABELS}"
            )
        names = {str(number): f"LABEL_{number}" for number in range(count)}
    if not isinstance(names, dict) or len(names) > MAX_LABELS:
        raise ValueError(f"{path}: id2label must be a table of up to {MAX_LABELS} names")
    labels = [_spell(names.get(str(number))) for number in range(len(names))]
    if not labels or not all(isinstance(each, str) for each in labels):
        raise ValueError(f"{path}: id2label must have a name for 0, 1, 2, …")
    if len(set(labels)) < len(labels):
        raise ValueError(f"{path}: id2label names a label twice")
    return tuple(map(str, labels))


def _spell(label: Any) -> Any:
    """A label's name; some are numbers."""
    return str(label) if type(label) is int else label


def read_problem(config: dict[str, Any], count: int, path: Path) -> str:
    """What the logits of a classifier say: its `problem_type`. One that names none and has a single
    logit tells a share, as theirs does."""
    problem = config.get("problem_type")
    if problem is None:
        return "one" if count > 1 else "any"
    if not isinstance(problem, str) or problem not in PROBLEMS:
        known = ", ".join(PROBLEMS)
        raise ValueError(f"{path}: problem_type ({str(problem)[:80]!r}) must be one of {known}")
    # One label alone would always be certain.
    return "any" if problem == "single_label_classification" and count == 1 else PROBLEMS[problem]
