"""The models by their names, as a recipe writes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any

from regard.naming import suggest


@dataclass(frozen=True)
class Entry:
    """One model: where it is written, and what it is for."""

    file: str
    config_name: str
    model_name: str
    task: str  # "language-model" or "translation"

    @property
    def config(self) -> type:
        """The frozen dataclass of its settings."""
        return getattr(self._module(), self.config_name)

    @property
    def model(self) -> Callable[[Any], Any]:
        """The class, made from a config."""
        return getattr(self._module(), self.model_name)

    def _module(self) -> Any:
        # Only when asked for: a list of names must not wait for torch.
        return import_module(f"regard.models.{self.file}")


MODELS: dict[str, Entry] = {
    "ngram": Entry("ngram", "NgramConfig", "Ngram", "language-model"),
    "window": Entry("window", "WindowConfig", "WindowLM", "language-model"),
    "rnn": Entry("recurrent", "RecurrentConfig", "RecurrentLM", "language-model"),
    "attentive-rnn": Entry("attentive", "AttentiveConfig", "AttentiveLM", "language-model"),
    "transformer-lm": Entry(
        "transformer", "TransformerLMConfig", "TransformerLM", "language-model"
    ),
    "seq2seq": Entry("seq2seq", "Seq2SeqConfig", "Seq2Seq", "translation"),
}


def entry(name: str) -> Entry:
    """The model of this name."""
    if name not in MODELS:
        raise ValueError(f"model ({name!r}) is not known; {suggest(name, MODELS)}")
    return MODELS[name]


def build(name: str, **settings: Any) -> Any:
    """A new model: `build("rnn", vocabulary_size=10_000, kind="gru")`."""
    found = entry(name)
    known = [field.name for field in fields(found.config)]
    for setting in settings:
        if setting not in known:
            raise ValueError(f"{name} has no setting {setting!r}; {suggest(setting, known)}")
    return found.model(found.config(**settings))
