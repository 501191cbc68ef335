"""Checkpoints of a run: everything it takes to go on as if nothing had happened."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from regard.checkpoints.folders import (
    check_folder,
    new_folder,
    read_json,
    read_tensors,
    sweep,
    write_json,
    write_tensors,
)


@dataclass
class Progress:
    """Where training stands; with the weights and the random state, all there is to know."""

    step: int = 0
    epoch: int = 0
    index: int = 0  # the next batch of this epoch
    history: list[float] = field(default_factory=list)  # validation losses, newest last
    best: float | None = None
    best_step: int = 0
    record_length: int = 0
    seconds: float = 0.0
    loss: float = 0.0  # since the last line of the record
    tokens: int = 0
    finished: bool = False


@dataclass(frozen=True)
class Checkpoint:
    progress: Progress
    weights: dict[str, Tensor]
    memory: dict[str, Tensor]  # the optimizer's
    extras: dict[str, Tensor]  # random state, carried state, best and averaged weights


def save_checkpoint(folder: Path, checkpoint: Checkpoint, keep: int) -> None:
    """Write `checkpoints/step-…`, whole or not at all, then let go of the oldest."""
    place = folder / f"step-{checkpoint.progress.step:08d}"
    with new_folder(place) as built:
        write_tensors(built / "model.safetensors", checkpoint.weights)
        write_tensors(built / "optimizer.safetensors", checkpoint.memory)
        write_tensors(built / "extras.safetensors", checkpoint.extras)
        write_json(built / "progress.json", asdict(checkpoint.progress))
    for old in sorted(folder.glob("step-*"))[:-keep]:
        shutil.rmtree(old)


def newest_checkpoint(folder: Path) -> tuple[Checkpoint, list[str]] | None:
    """The newest checkpoint that is whole, and a line about each that is not."""
    sweep(folder)
    complaints: list[str] = []
    for place in sorted(folder.glob("step-*"), reverse=True):
        try:
            check_folder(place)
            progress = Progress(**read_json(place / "progress.json"))
            parts = ("model", "optimizer", "extras")
            return (
                Checkpoint(progress, *(read_tensors(place / f"{p}.safetensors") for p in parts)),
                complaints,
            )
        except ValueError as error:
            complaints.append(str(error))
    if complaints:
        raise ValueError(f"no checkpoint in {folder} can be read: {'; '.join(complaints)}")
    return None


def averaged(folder: Path, count: int) -> dict[str, Tensor]:
    """The mean of the weights of the last `count` checkpoints. Vaswani et al. (2017), section
    6.1."""
    places = sorted(folder.glob("step-*"))[-count:]
    held = [read_tensors(place / "model.safetensors") for place in places]
    return {
        name: torch.stack([weights[name].double() for weights in held]).mean(dim=0).to(first.dtype)
        for name, first in held[0].items()
    }


def part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors under `prefix/`, by what comes after it."""
    start = f"{prefix}/"
    return {k.removeprefix(start): v for k, v in tensors.items() if k.startswith(start)}


def under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}/{key}": value for key, value in tensors.items()}
