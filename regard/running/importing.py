"""Folders of others in use, and as run folders: Hugging Face's, AllenNLP's ELMo."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from regard.checkpoints.allennlp import is_elmo, read_elmo
from regard.checkpoints.folders import new_folder, write_tensors
from regard.checkpoints.hugging_face import HuggingFaceFolder
from regard.checkpoints.weights import drop_tied
from regard.config import Recipe
from regard.models.outline import build_unfilled
from regard.running.run import Run
from regard.tasks import Resources, make_task
from regard.training.preparing import assemble
from regard.training.recipe import check, write_recipe


def load_hugging_face(folder: HuggingFaceFolder) -> Run:
    """The model of a folder that transformers saved, as a run that was never trained here."""
    recipe = make_recipe(folder)
    task, resources = make_task(recipe), Resources(folder.tokenizer, folder.labels)
    model = folder.load(partial(assemble, recipe, task, resources)).eval()
    return Run(folder.path, recipe, task, resources, model)


def import_folder(place: Path, out: Path) -> Run:
    """Write a folder of others as a run folder, whichever kind it is."""
    if is_elmo(place):
        return import_elmo(place, out)
    return import_hugging_face(place, out)


def import_hugging_face(place: Path, out: Path) -> Run:
    """Write a Hugging Face folder as a run folder."""
    if not HuggingFaceFolder.is_at(place):
        raise ValueError(
            f"{place} is no Hugging Face folder: config.json is missing; and no ELMo, which has "
            "options.json beside one .hdf5 file"
        )
    check_new(out)
    return save_run(load_hugging_face(HuggingFaceFolder(place)), out)


def import_elmo(place: Path, out: Path) -> Run:
    """Write AllenNLP's `options.json` and HDF5 weights as a run folder.

    It has no tokenizer, since no word is unknown to it, and no softmax: it embeds words.
    """
    check_new(out)
    settings, weights = read_elmo(place)
    content = {
        "name": place.resolve().name,
        "task": {"kind": "bidirectional-language-model"},
        "model": {"name": "elmo", **settings},
        "training": {"epochs": 1},  # of no run that ever was
    }
    recipe = check(content, str(place))
    task, resources = make_task(recipe), Resources()
    model = build_unfilled(lambda: assemble(recipe, task, resources))
    model.load_state_dict(weights)
    return save_run(Run(place, recipe, task, resources, model.eval()), out)


def save_run(run: Run, out: Path) -> Run:
    """Write a run that came from elsewhere as a run folder."""
    with new_folder(out) as built:
        (built / "recipe.toml").write_bytes(write_recipe(run.recipe))
        run.resources.save(built)
        weights = drop_tied(run.model.state_dict(), run.model)
        write_tensors(built / "model.safetensors", weights)
    return Run(out, run.recipe, run.task, run.resources, run.model)


def make_recipe(folder: HuggingFaceFolder) -> Recipe:
    """A recipe that says what the folder holds; its training is of no run that ever was."""
    settings = folder.settings
    content: dict[str, Any] = {
        "name": folder.path.resolve().name,
        "task": folder.task,
        "model": folder.model_section,
        "training": {"epochs": 1, "length": settings["longest"]},
    }
    for section, values in folder.architecture.recipe.items():
        content[section] = {**content.get(section, {}), **values}
    return check(content, str(folder.path))


def check_new(folder: Path) -> None:
    """Refuse to write where there is something already."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is not empty; name a folder that is not there yet")
