"""Runs as folders that other libraries load."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import nn

from regard.checkpoints.hugging_face.writing import write_folder
from regard.models.catalog import FORMER_NAMES
from regard.running.importing import check_new
from regard.running.run import Run


def export_hugging_face(run: Run, out: Path) -> str:
    """Write a run for transformers; gives the name of the class that loads it there."""
    if not isinstance(run.model, nn.Module):
        raise ValueError(f"{run.folder} counts n-grams, and has no counterpart at Hugging Face")
    check_new(out)
    config: Any = run.model.config
    name = run.recipe.model["name"]
    return write_folder(
        out,
        FORMER_NAMES.get(name, name),
        run.recipe.task,
        asdict(config),
        run.model,
        run.resources.tokenizer,
        run.labels,
    )
