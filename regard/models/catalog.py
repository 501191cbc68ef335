"""The models by their names, as a recipe writes them, and the tasks each can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any

from regard.naming import suggest


@dataclass(frozen=True)
class Entry:
    """One model: where it is written, its config, and the class that does each task.

    A model of yours gives the classes instead of their names: `Entry("", MyConfig, {"translation":
    MyModel})`.
    """

    file: str
    config_class: str | type
    tasks: Mapping[str, str | type]  # kind of task → class

    @property
    def config(self) -> type:
        """The frozen dataclass of its settings."""
        return self._find(self.config_class)

    def model(self, task: str | None = None) -> Callable[[Any], Any]:
        """The class that does a task, made from a config; there is one where there is one task."""
        if task is None:
            (task, *others) = self.tasks
            if others:
                raise ValueError(f"task (None) must be one of {', '.join(self.tasks)}")
        return self._find(self.tasks[task])

    def check_settings(self, name: str, settings: Mapping[str, Any]) -> None:
        """Refuse settings that its config does not have."""
        known = [field.name for field in fields(self.config)]
        for setting in settings:
            if setting not in known:
                raise ValueError(f"{name} has no setting {setting!r}; {suggest(setting, known)}")

    def preset(self, name: str) -> dict[str, Any]:
        """The settings of a row that has a name of its own: `presets` of the config."""
        known: Mapping[str, Mapping[str, Any]] = getattr(self.config, "presets", {})
        if name not in known:
            raise ValueError(f"preset ({name!r}) is not known; {suggest(name, known)}")
        return dict(known[name])

    def _find(self, name: str | type) -> Any:
        if isinstance(name, type):
            return name
        # Only when asked for: a list of names must not wait for torch.
        return getattr(import_module(f"regard.models.{self.file}"), name)


MODELS: dict[str, Entry] = {
    "ngram": Entry("ngram", "NgramConfig", {"language-model": "Ngram"}),
    "window": Entry("window", "WindowConfig", {"language-model": "WindowLM"}),
    "rnn": Entry("recurrent", "RecurrentConfig", {"language-model": "RecurrentLM"}),
    "attentive-rnn": Entry("attentive", "AttentiveConfig", {"language-model": "AttentiveLM"}),
    "gpt2": Entry("gpt2", "GPT2Config", {"language-model": "GPT2"}),
    "bert": Entry(
        "bert", "BertConfig", {"pretraining": "Bert", "classification": "BertClassifier"}
    ),
    "backpack": Entry("backpack", "BackpackConfig", {"language-model": "Backpack"}),
    "seq2seq": Entry("seq2seq", "Seq2SeqConfig", {"translation": "Seq2Seq"}),
    "bahdanau": Entry("bahdanau", "BahdanauConfig", {"translation": "Bahdanau"}),
    "luong": Entry("luong", "LuongConfig", {"translation": "Luong"}),
    "transformer": Entry("transformer", "TransformerConfig", {"translation": "Transformer"}),
    "lstmn": Entry(
        "lstmn",
        "LSTMNConfig",
        {"language-model": "LSTMNLM", "classification": "LSTMNClassifier"},
    ),
    "dan": Entry("dan", "DANConfig", {"classification": "DAN"}),
    "han": Entry("han", "HANConfig", {"classification": "HAN"}),
    "elmo": Entry(
        "elmo",
        "ELMoConfig",
        {"bidirectional-language-model": "ELMo", "classification": "ELMoClassifier"},
    ),
    "ntm": Entry("ntm", "NTMConfig", {"bits": "NTM"}),
    "mlp": Entry("mlp", "MLPConfig", {"table": "MLP"}),
}

FORMER_NAMES = {"transformer-lm": "gpt2"}
"""What older run folders call a model."""


def entry(name: str) -> Entry:
    """The model of this name."""
    name = FORMER_NAMES.get(name, name)
    if name not in MODELS:
        raise ValueError(f"model ({name!r}) is not known; {suggest(name, MODELS)}")
    return MODELS[name]


def build(name: str, task: str | None = None, *, preset: str | None = None, **settings: Any) -> Any:
    """A new model: `build("rnn", vocabulary_size=10_000, kind="gru")`.

    `preset` names a row of settings that the model has, and `settings` win over it.
    """
    found = entry(name)
    settings = settings if preset is None else {**found.preset(preset), **settings}
    found.check_settings(name, settings)
    return found.model(task)(found.config(**settings))
