"""A finished run, opened again: what its recipe says, what it learned, and how it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from regard.checkpoints.reading import Folder
from regard.checkpoints.weights import load_arrays, load_model
from regard.config import Recipe
from regard.models import catalog
from regard.tasks import Resources, Task, make_task
from regard.training.preparing import assemble
from regard.training.recipe import parse_recipe
from regard.training.starting import MAX_RECIPE_BYTES

WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class Finished:
    """Everything that a run folder holds, in use."""

    recipe: Recipe
    task: Task[Any]
    resources: Resources
    model: Any


def open_finished(folder: Path) -> Finished:
    """The run in a folder with a manifest, which may come from a stranger: nothing in it is run,
    and each file is read only as the manifest lists it."""
    files = Folder(folder)
    files.check()
    recipe = parse_recipe(files.read("recipe.toml", MAX_RECIPE_BYTES), folder / "recipe.toml")
    task, resources = make_task(recipe), Resources.load(files)
    make = partial(assemble, recipe, task, resources)
    kind = catalog.entry(recipe.model["name"]).model(recipe.task["kind"])
    if hasattr(kind, "from_tensors"):  # it learned without gradients, and is no module
        model = kind.from_tensors(make().config, load_arrays(files, WEIGHTS))
    else:
        model = load_model(make, files, WEIGHTS).eval()
    return Finished(recipe, task, resources, model)
