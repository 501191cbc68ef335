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
    def task(self) -> str:
        """The kind of task that the model does here."""
        return self.architecture.task

    @cached_property
    def tokenizer(self) -> Tokenizer | None:
        """Its words, if it brings them."""
        return read_tokenizer(self.files)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its classes, if it tells some apart."""
        return ()

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
        return self.table.untie({**settings, **self.architecture.settings}, tensors)


def find_table(config: dict[str, Any], path: Path) -> tuple[Table, Architecture]:
    """The table of the model that a config.json names, and which of its classes it is."""
    named, kind = config.get("architectures"), config.get("model_type")
    for table in TABLES:
        for name, architecture in table.architectures.items():
            if name in named if isinstance(named, list) and named else kind == table.model_type:
                return table, architecture
    told = f"architectures ({str(named)[:80]})" if named else f"model_type ({str(kind)[:80]!r})"
    raise ValueError(f"{path}: {told} is none that regard has: {', '.join(architecture_names())}")
