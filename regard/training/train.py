"""From a recipe to a run folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.checkpoints.folders import (
    is_left_over,
    is_whole,
    replacing,
    sweep,
    write_file,
    write_manifest,
    write_tensors,
)
from regard.checkpoints.reading import LARGEST_TEXT, check_size, read_regular, refuse_links
from regard.data.feeds import Columns, Feed
from regard.models.ngram import Ngram
from regard.text import Tokenizer
from regard.training.board import on_board
from regard.training.evaluation import figures, scored
from regard.training.files import toml
from regard.training.loop import Tell, Training
from regard.training.memory import keep_freed_memory
from regard.training.placement import Placement
from regard.training.recipe import LARGEST_RECIPE, Recipe, parse_recipe, read_recipe
from regard.training.record import Record
from regard.training.saving import check_fits, newest_checkpoint
from regard.training.shipped import find_recipe
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
    recipe = rooted(read_recipe(name, settings), find_recipe(name).parent)
    folder = out or Path("runs") / recipe.name
    written = toml(asdict(recipe)).encode()
    parse_recipe(written, folder / "recipe.toml")  # or the run could not be loaded
    keep_freed_memory()
    placement = Placement.here()
    try:
        check_place(folder, recipe, resume)
        if resume and is_whole(folder):
            return folder, True
        work = prepare(recipe, Path())
        placement.wait()
        if placement.first and not resume:
            folder.mkdir(parents=True, exist_ok=True)
            write_file(folder / "recipe.toml", written)
        if isinstance(work.model, Ngram):
            count(work, folder, tell)
            return folder, True
        return folder, learn(work, folder, placement, resume, tell, probe)
    finally:
        placement.close()


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
        for section, value in asdict(before).items():
            if asdict(recipe)[section] != value:
                raise ValueError(
                    f"--resume: {section} of the recipe is not what {folder} was begun with; "
                    f"use {kept}, or train into another folder"
                )
        return
    # What failed before its first save left these, and nothing worth keeping.
    begun = {"recipe.toml", "tokenizer.json", "record.jsonl"}
    there = [p for p in folder.iterdir() if not is_left_over(p)] if folder.exists() else []
    if any(path.name not in begun for path in there):
        raise ValueError(f"{folder} is not empty; --resume goes on with it, --out names another")


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
        save_tokenizer(work.tokenizer, folder / "tokenizer.json")

    def evaluate() -> dict[str, float]:
        if probe is not None and placement.first:
            probe(work, folder / "probes", training.progress.step)
        if work.valid is None:
            return {"loss": training.progress.loss / max(training.progress.tokens, 1)}
        return scored(training.objective, work.valid, training.carries)

    quiet: Tell = tell if placement.first else lambda event, values: None
    if recipe.training.tensorboard and placement.first:
        quiet = on_board(folder, quiet)
    training = Training(work.model, work.train, recipe.training, folder, placement, evaluate, quiet)
    sweep(folder)
    held = newest_checkpoint(folder / "checkpoints") if resume else None
    if held is not None:
        checkpoint, complaints = held
        for line in complaints:
            tell("note", {"text": line})
        check_fits(checkpoint, work.model.state_dict(), folder / "checkpoints")
        training.restore(checkpoint)
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


def count(work: Work, folder: Path, tell: Tell) -> None:
    """Train by counting: one look at the text is all an n-gram model needs."""
    started = time.monotonic()
    record = Record(folder / "record.jsonl")
    save_tokenizer(work.tokenizer, folder / "tokenizer.json")
    work.model.fit(words_of(work.train), work.tokenizer.end)
    values: dict[str, Any] = {} if work.valid is None else counted(work.model, work.valid)
    values["seconds"] = round(time.monotonic() - started, 2)
    record.write("valid", step=1, epoch=1, **values)
    tell("valid", {"step": 1, "epoch": 1, "total": 1, **values})
    arrays = work.model.tensors()
    close_folder(folder, {name: torch.from_numpy(array) for name, array in arrays.items()})


def save_tokenizer(tokenizer: Tokenizer, path: Path) -> None:
    """Write `tokenizer.json`, if it is not longer than whoever loads the run would read."""
    content = tokenizer.to_json().encode()
    check_size(len(content), LARGEST_TEXT, path)
    write_file(path, content)


def words_of(feed: Feed) -> NDArray[np.int64]:
    """The text of a feed, for models that count it whole."""
    if not isinstance(feed, Columns):
        raise ValueError("an n-gram model reads its text in order: training.feed must be 'columns'")
    return feed.words().long().numpy()


def counted(model: Ngram, feed: Feed) -> dict[str, float]:
    words = words_of(feed)
    loss = -float(model.log_probabilities(words).mean())
    return {**figures(loss), "tokens": len(words)}


def close_folder(folder: Path, weights: dict[str, Any]) -> None:
    """The weights, and last the manifest that says the run is whole."""
    with replacing(folder / "model.safetensors") as hidden:
        write_tensors(hidden, weights)
    write_manifest(folder)
