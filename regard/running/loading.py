"""Open a run folder, or a Hugging Face folder as it is, from whoever it comes."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from regard.checkpoints.hugging_face import HuggingFaceFolder
from regard.checkpoints.reading import MANIFEST, Folder
from regard.checkpoints.weights import load_arrays, load_model
from regard.checkpoints.zoo import find_run, hint_at_zoo
from regard.models import catalog
from regard.running.importing import load_hugging_face
from regard.running.run import Run
from regard.tasks import Resources, make_task
from regard.training.preparing import assemble
from regard.training.recipe import parse_recipe
from regard.training.starting import MAX_RECIPE_BYTES

WEIGHTS = "model.safetensors"


def load(run: str | Path) -> Run:
    """The model of a run folder, of one in the zoo by its name, or of a Hugging Face folder.

    The folder may come from a stranger: nothing in it is run, and each file of a run is read only
    as the manifest lists it. Torch's generator is left as it was.
    """
    folder = find_run(run)
    if not folder.is_dir():
        raise ValueError(f"no run folder at {folder}{hint_at_zoo(folder)}")
    if not os.path.lexists(folder / MANIFEST):
        if HuggingFaceFolder.is_at(folder):
            return load_hugging_face(HuggingFaceFolder(folder))
        begun = (folder / "recipe.toml").is_file()
        hint = "; `regard train … --resume` goes on with it" if begun else ""
        raise ValueError(
            f"{folder} is not a finished run: {MANIFEST} is missing{hint}"
            f"{'' if begun else ', and so is the config.json of a Hugging Face folder'}"
        )
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
    return Run(folder, recipe, task, resources, model)
