"""From a recipe to a run folder."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.atomic import replacing, write_atomically
from regard.checkpoints.folders import (
    is_complete,
    is_unfinished,
    recover,
    write_manifest,
    write_tensors,
)
from regard.checkpoints.reading import MAX_TEXT_BYTES, check_size, read_regular, refuse_links
from regard.data.feeds import Columns, Feed
from regard.models.ngram import Ngram
from regard.text import Tokenizer
from regard.training.board import on_board
from regard.training.evaluation import score_ngram, seconds
from regard.training.files import toml
from regard.training.loop import Tell, Training
from regard.training.memory import keep_freed_memory
from regard.training.placement import Placement
from regard.training.recipe import LARGEST_RECIPE, Recipe, parse_recipe, read_recipe
from regard.training.record import Record
from regard.training.saving import check_fits, newest_checkpoint
from regard.training.shipped import SHIPPED, find_recipe
from regard.training.signals import Signals
from regard.training.tasks import Work, prepare

Probe = Callable[[Work, Path, int], None]


def train(
    name: str,
    out: Path | None = None,
    settings: list[str] | None = None,
    *,
    resume: bool = False,
    tell: Tell = lambda event, values: None,
    probe: Probe | None = None,
) -> tuple[Path, bool]:
    """Train what a recipe asks for; return the run folder, and whether training came to its end.

    A run that was stopped by a signal has saved itself and goes on with `resume`.
    """
    recipe = rooted(read_recipe(name, settings), data_folder(find_recipe(name)))
    folder = out or Path("runs") / recipe.name
    written = toml(asdict(recipe)).encode()
    parse_recipe(written, folder / "recipe.toml")  # or the run could not be loaded
    keep_freed_memory()
    placement = Placement.here()
    try:
        check_place(folder, recipe, resume)
        if resume and is_complete(folder):
            return folder, True
        work = prepare(recipe, Path())
        check_validation(work)
        placement.wait()
        if placement.first and not resume:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / "recipe.toml", written)
        if isinstance(work.model, Ngram):
            tell("begin", header(work, folder, placement))
            count(work, folder, tell)
            return folder, True
        return folder, learn(work, folder, placement, resume, tell, probe)
    finally:
        placement.close()


def data_folder(recipe: Path) -> Path:
    """Where data lies when nobody says: beside a recipe of yours; for those that come with regard,
    where you are."""
    return Path.cwd() if recipe.parent == SHIPPED else recipe.parent


def rooted(recipe: Recipe, beside: Path) -> Recipe:
    """The recipe with the folder of its data in it, so that the run finds it again."""
    data = recipe.data
    if data.train is None or data.root is not None or os.environ.get("REGARD_DATA"):
        return recipe
    return replace(recipe, data=replace(data, root=str(beside.resolve())))


def check_place(folder: Path, recipe: Recipe, resume: bool) -> None:
    """A new run needs an empty folder, a resumed one the folder it was begun in."""
    kept = folder / "recipe.toml"
    if resume and not kept.is_file():
        raise ValueError(f"--resume: there is no run in {folder}")
    if resume:
        refuse_links(folder)
        before = parse_recipe(read_regular(kept, LARGEST_RECIPE), kept)
        different = first_difference(asdict(before), asdict(recipe))
        if different is not None:
            key, old, new = different
            raise ValueError(
                f"--resume: {key} is {new!r}, and {folder} was begun with {old!r}; "
                f"`{resume_command(folder)}` goes on with it as it was begun"
            )
        return
    # What failed before its first save left these, and nothing worth keeping.
    begun = {"recipe.toml", "tokenizer.json", "record.jsonl"}
    there = [p for p in folder.iterdir() if not is_unfinished(p)] if folder.exists() else []
    if any(path.name not in begun for path in there):
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
    """Refuse settings that wait for validation losses where there will be none."""
    training, kind = work.recipe.training, work.recipe.task.kind
    schedule = training.schedule.kind
    waiting = f"training.patience ({training.patience})" if training.patience else ""
    if schedule == "plateau":
        waiting = f"training.schedule.kind ({schedule!r})"
    if waiting and work.valid is None:
        ways = "data.valid" if kind == "translation" else "data.valid or data.valid_share"
        raise ValueError(
            f"{waiting} waits for the validation loss, but there is no validation data: set {ways}"
        )


def learn(
    work: Work,
    folder: Path,
    placement: Placement,
    resume: bool,
    tell: Tell,
    probe: Probe | None,
) -> bool:
    """Train by gradient; True when it came to its end."""
    recipe = work.recipe
    if placement.first:
        recover(folder)
        save_tokenizer(work.tokenizer, folder / "tokenizer.json")
    placement.wait()  # what another process is writing must not be swept away

    def probe_now(step: int) -> None:
        if probe is not None and placement.first:
            probe(work, folder / "probes", step)

    quiet: Tell = tell if placement.first else lambda event, values: None
    if recipe.training.tensorboard and placement.first:
        quiet = on_board(folder, quiet)
    training = Training(
        work.model, work.train, work.valid, recipe.training, folder, placement, probe_now, quiet
    )
    held = newest_checkpoint(folder / "checkpoints") if resume else None
    if held is not None:
        checkpoint, complaints = held
        for line in complaints:
            tell("note", {"text": line})
        check_fits(checkpoint, work.model.state_dict(), folder / "checkpoints")
        training.restore(checkpoint)
    quiet("begin", header(work, folder, placement, training.progress.step))
    if placement.first:
        length = training.progress.record_length if held is not None else None
        training.record = Record(folder / "record.jsonl", length)
    with Signals() as signals:
        ended = training.run(signals)
    if ended:
        training.save()
        weights = placement.whole(work.model)
        if placement.first:
            close_folder(folder, weights)
    return ended


def header(work: Work, folder: Path, placement: Placement, step: int = 0) -> dict[str, Any]:
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


def count(work: Work, folder: Path, tell: Tell) -> None:
    """Train by counting: one look at the text is all an n-gram model needs."""
    started = time.monotonic()
    record = Record(folder / "record.jsonl")
    save_tokenizer(work.tokenizer, folder / "tokenizer.json")
    work.model.fit(words_of(work.train), work.tokenizer.end)
    if work.valid is not None:
        values = score_ngram(work.model, words_of(work.valid))
        values["seconds"] = seconds(started)
        record.write("valid", step=1, epoch=1, **values)
        tell("valid", {"step": 1, "epoch": 1, "total": 1, **values})
    record.write("end", step=1, seconds=seconds(started))
    arrays = work.model.tensors()
    close_folder(folder, {name: torch.from_numpy(array) for name, array in arrays.items()})


def save_tokenizer(tokenizer: Tokenizer, path: Path) -> None:
    """Write `tokenizer.json`, if it is not longer than whoever loads the run would read."""
    content = tokenizer.to_json().encode()
    check_size(len(content), MAX_TEXT_BYTES, path)
    write_atomically(path, content)


def words_of(feed: Feed) -> NDArray[np.int64]:
    """The text of a feed, for models that count it whole."""
    if not isinstance(feed, Columns):
        raise ValueError("an n-gram model reads its text in order: training.feed must be 'columns'")
    return feed.words().long().numpy()


def close_folder(folder: Path, weights: dict[str, Any]) -> None:
    """The weights, and last the manifest that says the run is whole."""
    with replacing(folder / "model.safetensors") as hidden:
        write_tensors(hidden, weights)
    write_manifest(folder)
