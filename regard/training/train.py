"""From a recipe to a run folder."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.atomic import replacing, write_atomically
from regard.checkpoints.folders import (
    is_complete,
    is_unfinished,
    recover,
    write_manifest,
    write_tensors,
)
from regard.checkpoints.reading import read_regular, refuse_links
from regard.config import Recipe
from regard.tasks.scoring import seconds_since
from regard.training.loop import Report, Training
from regard.training.memory import keep_freed_memory
from regard.training.placement import Placement
from regard.training.preparing import Work, prepare
from regard.training.recipe import parse_recipe, read_recipe, write_recipe
from regard.training.record import Record
from regard.training.saving import check_fits, list_checkpoints, newest_checkpoint
from regard.training.shipped import SHIPPED, find_recipe
from regard.training.signals import Signals
from regard.training.starting import MAX_RECIPE_BYTES
from regard.training.teaching import ANSWERS, ask_teachers
from regard.training.tensorboard import report_to_tensorboard

Probe = Callable[[Work, Path, int], None]


def train(
    name: str,
    out: Path | None = None,
    settings: list[str] | None = None,
    *,
    resume: bool = False,
    report: Report = lambda event, values: None,
    probe: Probe | None = None,
) -> tuple[Path, bool]:
    """Train what a recipe asks for; return the run folder, and whether training came to its end.

    A run that was stopped by a signal has saved itself and goes on with `resume`.
    """
    recipe = set_data_root(read_recipe(name, settings), data_folder(find_recipe(name)))
    folder = out or Path("runs") / recipe.name
    content = write_recipe(recipe)
    parse_recipe(content, folder / "recipe.toml")  # or the run could not be loaded
    keep_freed_memory()
    placement = Placement.from_environment()
    try:
        check_run_folder(folder, recipe, resume)
        if resume and is_complete(folder):
            return folder, True
        begun = resume and bool(list_checkpoints(folder / "checkpoints"))
        answers = ask_teachers(recipe, folder, placement, resume, report)
        work = prepare(recipe, begun, answers)
        check_validation(work)
        placement.barrier()
        if placement.first and not resume:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / "recipe.toml", content)
        if not isinstance(work.model, nn.Module):
            report("begin", describe_run(work, folder, placement))
            fit(work, folder, report)
            return folder, True
        return folder, train_by_gradient(work, folder, placement, resume, report, probe)
    finally:
        placement.close()


def data_folder(recipe: Path) -> Path:
    """Where data lies when nobody says: beside a recipe of yours; for those that come with regard,
    where you are."""
    return Path.cwd() if recipe.parent == SHIPPED else recipe.parent


def set_data_root(recipe: Recipe, beside: Path) -> Recipe:
    """The recipe with the folder of its data in it, so that the run finds it again."""
    data = recipe.data
    if data.train is None or data.root is not None or os.environ.get("REGARD_DATA"):
        return recipe
    return replace(recipe, data=replace(data, root=str(beside.resolve())))


def check_run_folder(folder: Path, recipe: Recipe, resume: bool) -> None:
    """A new run needs an empty folder, a resumed one the folder it was begun in."""
    path = folder / "recipe.toml"
    if resume and not path.is_file():
        raise ValueError(f"--resume: there is no run in {folder}")
    if resume:
        refuse_links(folder)
        before = parse_recipe(read_regular(path, MAX_RECIPE_BYTES), path)
        different = first_difference(asdict(before), asdict(recipe))
        if different is not None:
            key, old, new = different
            raise ValueError(
                f"--resume: {key} is {new!r}, and {folder} was begun with {old!r}; "
                f"`{resume_command(folder)}` goes on with it as it was begun"
            )
        return
    # What failed before its first save left these, and nothing worth keeping.
    begun = {"recipe.toml", "tokenizer.json", "labels.json", "record.jsonl", ANSWERS}
    held = [p for p in folder.iterdir() if not is_unfinished(p)] if folder.exists() else []
    if any(file.name not in begun for file in held):
        raise ValueError(f"{folder} is not empty; --resume goes on with it, --out names another")


def first_difference(before: Any, now: Any, key: str = "") -> tuple[str, Any, Any] | None:
    """The first key at which two recipes differ, and its two values."""
    if not (isinstance(before, dict) and isinstance(now, dict)):
        return None if before == now else (key, before, now)
    for name in [*before, *(each for each in now if each not in before)]:
        where = f"{key}.{name}" if key else name
        found = first_difference(before.get(name), now.get(name), where)
        if found is not None:
            return found
    return None


def resume_command(folder: Path) -> str:
    """What to type to go on with a run, wherever its recipe came from."""
    words = ["regard", "train", folder / "recipe.toml", "--out", folder, "--resume"]
    return shlex.join(map(str, words))


def check_validation(work: Work) -> None:
    """Refuse settings that wait for validation scores where there will be none."""
    training = work.recipe.training
    schedule = training.schedule.kind
    waiting = f"training.patience ({training.patience})" if training.patience else ""
    if schedule == "plateau":
        waiting = f"training.schedule.kind ({schedule!r})"
    if waiting and work.valid is None:
        raise ValueError(
            f"{waiting} waits for what the validation data say, but there is no validation data: "
            "set data.valid or data.valid_share"
        )


def train_by_gradient(
    work: Work,
    folder: Path,
    placement: Placement,
    resume: bool,
    report: Report,
    probe: Probe | None,
) -> bool:
    """Train by gradient; True when it came to its end."""
    recipe = work.recipe
    if placement.first:
        recover(folder)
        work.resources.save(folder)
    placement.barrier()  # what another process is writing must not be swept away

    def probe_now(step: int) -> None:
        if probe is not None and placement.first:
            probe(work, folder / "probes", step)

    quiet: Report = report if placement.first else lambda event, values: None
    if recipe.training.tensorboard and placement.first:
        quiet = report_to_tensorboard(folder, quiet)
    training = Training(work, folder, placement, probe_now, quiet)
    restored = resume and restore_newest(training, folder / "checkpoints", report)
    quiet("begin", describe_run(work, folder, placement, training.progress.step))
    if placement.first:
        length = training.progress.record_length if restored else None
        training.record = Record(folder / "record.jsonl", length)
    with Signals() as signals:
        ended = training.run(signals)
    if ended:
        training.save()
        weights = placement.full_state(work.model)
        if placement.first:
            close_folder(folder, weights)
        placement.barrier()  # whoever comes out of this finds the run whole
    return ended


def restore_newest(training: Training, checkpoints: Path, report: Report) -> bool:
    """Go on from the newest whole checkpoint; False if there is none."""
    newest = newest_checkpoint(checkpoints)
    if newest is None:
        return False
    checkpoint, complaints = newest
    for line in complaints:
        report("note", {"text": line})
    own = training.objective.own_state()
    check_fits(checkpoint, training.work.model.state_dict(), own, checkpoints)
    training.restore(checkpoint)
    return True


def describe_run(work: Work, folder: Path, placement: Placement, step: int = 0) -> dict[str, Any]:
    """What is about to happen, for whoever waits for the first figures."""
    parameters = getattr(work.model, "parameters", None)
    return {
        "model": work.recipe.model["name"],
        "parameters": sum(p.numel() for p in parameters()) if parameters is not None else None,
        "data": work.train.summary,
        "device": str(placement.device),
        "processes": placement.world,
        "folder": str(folder),
        "step": step,
    }


def fit(work: Work, folder: Path, report: Report) -> None:
    """Train without gradients: one look at the data is all that is needed."""
    started = time.monotonic()
    record = Record(folder / "record.jsonl")
    work.resources.save(folder)
    work.task.fit(work.model, work.train, work.resources)
    if work.valid is not None:
        values = work.task.evaluate_fitted(work.model, work.valid)
        values["seconds"] = seconds_since(started)
        record.write("valid", step=1, epoch=1, **values)
        report("valid", {"step": 1, "epoch": 1, "total": 1, **values})
    record.write("end", step=1, seconds=seconds_since(started))
    arrays = work.model.tensors()
    close_folder(folder, {name: torch.from_numpy(array) for name, array in arrays.items()})


def close_folder(folder: Path, weights: dict[str, Any]) -> None:
    """The weights, and last the manifest that says the run is whole."""
    with replacing(folder / "model.safetensors") as hidden:
        write_tensors(hidden, weights)
    write_manifest(folder)
