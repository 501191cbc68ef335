"""What is in the zoo: trained models that are loaded by name.

from regard.running.zoo import list_zoo

[entry.name for entry in list_zoo()]  # each of them for `regard.load`
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from regard.checkpoints.reading import Folder
from regard.checkpoints.zoo import INSTALL, zoo_runs
from regard.training.recipe import parse_recipe
from regard.training.starting import MAX_RECIPE_BYTES

EVALUATION = "evaluation.json"
"""What a run of the zoo scores as it is stored; a run folder of yours may have none."""


@dataclass(frozen=True)
class ZooEntry:
    """A run of the zoo, as it is listed."""

    name: str
    task: str
    model: str
    bytes: int  # of all its files
    scores: dict[str, float]  # those its recipe names, of the weights as they are stored


def list_zoo() -> list[ZooEntry]:
    """Every run that is found by name."""
    runs = zoo_runs()
    if not runs:
        raise ValueError(f"there is no zoo: {INSTALL}, and $REGARD_ZOO names a folder of runs")
    return [describe_run(name, folder) for name, folder in runs.items()]


def describe_run(name: str, folder: Path) -> ZooEntry:
    """What the files of a run say about it; no model is built."""
    files = Folder(folder)
    recipe = parse_recipe(files.read("recipe.toml", MAX_RECIPE_BYTES), folder / "recipe.toml")
    values = files.read_json(EVALUATION) if EVALUATION in files.entries else {}
    scores = {key: float(values[key]) for key in recipe.evaluation.expected if key in values}
    size = sum(entry.size for entry in files.entries.values())
    return ZooEntry(name, recipe.task["kind"], recipe.model["name"], size, scores)
