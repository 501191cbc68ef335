"""Train in Python as on the command line: `regard.train("sst2-dan")`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.running.loading import load
from regard.running.run import Run
from regard.training.loop import Report
from regard.training.preparing import Work
from regard.training.toml import to_toml_value
from regard.training.train import resume_command
from regard.training.train import train as train_recipe

Settings = Mapping[str, Any] | Sequence[str]


class Stopped(Exception):  # noqa: N818  (it is no error)
    """Training was asked to stop by a signal, and has saved itself."""

    def __init__(self, folder: Path):
        super().__init__(f"stopped and saved; go on with: {resume_command(folder)}")
        self.folder = folder


def train(
    recipe: str | Path,
    out: str | Path | None = None,
    settings: Settings = (),
    *,
    resume: bool = False,
    report: Report = lambda event, values: None,
) -> Run:
    """Train what a recipe asks for, and open the run.

    regard.train("sst2-dan", out="runs/mine", settings={"training.epochs": 3})

    `settings` replace those of the recipe, as `--set` does; a mapping, or `"a.b=value"` strings.
    Ctrl-C finishes the step, saves, and raises `Stopped`; `resume=True` goes on.
    """
    place = None if out is None else Path(out)
    folder, ended = train_recipe(
        os.fspath(recipe),
        place,
        as_strings(settings),
        resume=resume,
        report=report,
        probe=save_probes,
    )
    if not ended:
        raise Stopped(folder)
    return load(folder)


def as_strings(settings: Settings) -> list[str]:
    """{"training.steps": 3} → ["training.steps=3"]"""
    if isinstance(settings, str):
        raise ValueError(f"settings ({settings!r}) must be a mapping, or a list of strings")
    if not isinstance(settings, Mapping):
        return list(settings)
    return [f"{key}={to_toml_value(value)}" for key, value in settings.items()]


def save_probes(work: Work, folder: Path, step: int) -> None:
    """Save where the model looks now, for each probe of the recipe."""
    probes = work.recipe.training.probes
    if probes:
        folder.mkdir(exist_ok=True)
    was = work.model.training
    run = Run(folder, work.recipe, work.task, work.resources, work.model.eval())
    for number, probe in enumerate(probes):
        texts = [probe] if isinstance(probe, str) else probe
        run.look(*texts).save(folder / f"step-{step:08d}-{number}.json")
    work.model.train(was)
