"""Models of ours as folders that transformers loads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from regard.atomic import write_atomically
from regard.checkpoints.folders import new_plain_folder, write_json, write_tensors
from regard.checkpoints.hugging_face.catalog import table_of
from regard.checkpoints.hugging_face.files import CONFIG, SAFETENSORS
from regard.checkpoints.hugging_face.folder import PROBLEMS
from regard.checkpoints.hugging_face.table import Architecture, Settings
from regard.checkpoints.hugging_face.words import TOKENIZER, TOKENIZER_CONFIG
from regard.checkpoints.weights import drop_tied
from regard.text import Tokenizer
from regard.text.roles import HUGGING_FACE

FAST = "PreTrainedTokenizerFast"  # their class for a tokenizer.json of any kind


def write_folder(
    path: Path,
    name: str,
    task: Mapping[str, Any],
    settings: Settings,
    model: nn.Module,
    tokenizer: Tokenizer | None,
    labels: tuple[str, ...] = (),
) -> str:
    """Write a model of this name, and its words, for Hugging Face; gives the class to load it by.

    The folder is there whole or not at all.
    """
    table = table_of(name)
    architecture = table.choose(task["kind"], settings)
    config = {
        "architectures": [architecture.name],
        "model_type": table.model_type,
        "dtype": "float32",
        **table.write_settings(settings),
        **_ids(tokenizer),
        **_write_labels(architecture, labels, task.get("labels", "one")),
    }
    weights = table.fill_biases(drop_tied(model.state_dict(), model))
    tensors = table.write_weights(weights, architecture)
    with new_plain_folder(path) as built:
        write_json(built / CONFIG, config)
        write_tensors(built / SAFETENSORS, tensors, {"format": "pt"})
        if tokenizer is not None:
            content = tokenizer.to_json(marked=table.marked)
            write_atomically(built / TOKENIZER, content.encode())
            write_json(built / TOKENIZER_CONFIG, _describe(tokenizer, settings["longest"]))
    return architecture.name


def _ids(tokenizer: Tokenizer | None) -> dict[str, int | None]:
    """The special tokens that generation asks the config for; theirs would be assumed otherwise."""
    roles = {} if tokenizer is None else tokenizer.roles
    return {
        f"{theirs}_token_id": roles.get(ours)
        for theirs, ours in (("bos", "start"), ("eos", "end"), ("pad", "pad"))
    }


def _write_labels(
    architecture: Architecture, labels: tuple[str, ...], told: str
) -> Mapping[str, Any]:
    if not architecture.labelled:
        return {}
    [problem] = [theirs for theirs, ours in PROBLEMS.items() if ours == told]
    return {
        # One logit that tells a share needs no name, and would be learned otherwise with one.
        **({} if told == "any" and len(labels) == 1 else {"problem_type": problem}),
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
    }


def _describe(tokenizer: Tokenizer, longest: int) -> dict[str, Any]:
    """Which token plays which part, in the names of their roles."""
    roles = {
        theirs: tokenizer.tokens_of([tokenizer.roles[ours]])[0]
        for theirs, ours in HUGGING_FACE.items()
        if ours in tokenizer.roles
    }
    return {
        "tokenizer_class": FAST,
        "model_max_length": longest,
        "clean_up_tokenization_spaces": False,
        **roles,
    }
