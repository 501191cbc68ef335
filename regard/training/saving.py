"""Checkpoints of a run: everything it takes to go on as if nothing had happened."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from regard.checkpoints.folders import (
    new_folder,
    recover,
    remove_folder,
    write_json,
    write_tensors,
)
from regard.checkpoints.reading import Folder, refuse_links
from regard.checkpoints.weights import check_weights
from regard.training.checking import check_as

NAME = re.compile(r"step-[0-9]{8,}")


@dataclass
class Progress:
    """Where training stands; with the weights and the random state, all there is to know."""

    step: int = 0
    epoch: int = 0
    index: int = 0  # the next batch of this epoch
    history: list[float] = field(default_factory=list)  # the selecting metric, newest last
    best: float | None = None
    best_step: int = 0
    record_length: int = 0
    seconds: float = 0.0
    sums: dict[str, float] = field(default_factory=dict)  # since the last line of the record
    counts: dict[str, float] = field(default_factory=dict)
    tokens: int = 0
    finished: bool = False
    interim: bool = False  # saved since a signal asked to stop, and not since it was time

    def __post_init__(self) -> None:
        for name in ("step", "epoch", "index", "record_length"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} ({getattr(self, name)}) must be 0 or more")


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds."""

    progress: Progress
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    extras: dict[str, Tensor]  # random and carried state, best and averaged weights, the
    # objective's own parameters and buffers


def save_checkpoint(folder: Path, checkpoint: Checkpoint, keep: int) -> None:
    """Write `checkpoints/step-…`, whole or not at all, then let go of the oldest."""
    place = folder / f"step-{checkpoint.progress.step:08d}"
    with new_folder(place) as built:
        write_tensors(built / "model.safetensors", checkpoint.weights)
        write_tensors(built / "optimizer.safetensors", checkpoint.optimizer)
        write_tensors(built / "extras.safetensors", checkpoint.extras)
        write_json(built / "progress.json", asdict(checkpoint.progress))
    for old in find_outdated(folder, place, keep):
        remove_folder(old)


def find_outdated(folder: Path, newest: Path, keep: int) -> list[Path]:
    """The checkpoints that are not among the last `keep`, of which `newest` was saved last.

    One of a later step was passed over when the run was resumed, since it is damaged. One that was
    saved between times only serves to go on from, and takes nobody's place.
    """
    places = list_checkpoints(folder)
    until = places.index(newest)
    timely = [place for place in places[: until + 1] if not is_interim(place)]
    kept = {newest, *timely[-keep:]}
    return [place for place in places if place not in kept]


def is_interim(place: Path) -> bool:
    """Whether a checkpoint was saved between times; a damaged one is not said to be."""
    try:
        progress = Folder(place).read_json("progress.json")
    except (ValueError, OSError):
        return False
    return isinstance(progress, dict) and progress.get("interim") is True


def list_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of a folder, oldest first."""
    found = [path for path in folder.glob("step-*") if NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: int(path.name.removeprefix("step-")))


def newest_checkpoint(folder: Path) -> tuple[Checkpoint, list[str]] | None:
    """The newest checkpoint that is whole, and a line about each that is not."""
    if not folder.is_dir():
        return None
    refuse_links(folder)
    recover(folder)
    complaints: list[str] = []
    for place in reversed(list_checkpoints(folder)):
        try:
            return read_checkpoint(place), complaints
        except (ValueError, OSError) as error:
            complaints.append(str(error))
    if complaints:
        raise ValueError(f"no checkpoint in {folder} can be read: {'; '.join(complaints)}")
    return None


def read_checkpoint(place: Path) -> Checkpoint:
    """The checkpoint in a folder, once every file of it was checked."""
    files = Folder(place)
    files.check()
    where = str(place / "progress.json")
    progress: Progress = check_as(Progress, files.read_json("progress.json"), where)
    parts = (files.tensors(f"{part}.safetensors") for part in ("model", "optimizer", "extras"))
    return Checkpoint(progress, *parts)


def check_fits(
    checkpoint: Checkpoint,
    weights: Mapping[str, Tensor],
    own: Mapping[str, Tensor],
    where: Path,
) -> None:
    """Refuse a checkpoint of another model than the one with these weights, or of an objective
    with other parameters of its own."""
    extras = checkpoint.extras
    check_weights(checkpoint.weights, weights, f"{where}: model.safetensors")
    for name in ("best", "ema"):
        if held := select_prefix(extras, name):
            check_weights(held, weights, f"{where}: {name} of extras.safetensors")
    check_weights(
        select_prefix(extras, "objective"), own, f"{where}: objective of extras.safetensors"
    )
    weights = {**weights, **add_prefix("objective", dict(own))}
    for path, value in checkpoint.optimizer.items():
        name = path.rpartition("/")[0]
        fits = name in weights and value.shape in ((), weights[name].shape)
        if not (fits and value.is_floating_point()):
            raise ValueError(f"{where}: optimizer.safetensors holds {path}, which fits no weight")
    try:
        torch.Generator().set_state(extras["random"])
    except (KeyError, TypeError, RuntimeError):
        raise ValueError(f"{where}: extras.safetensors holds no state of a generator") from None


def average_weights(folder: Path, count: int) -> dict[str, Tensor]:
    """The mean of the weights of the last `count` checkpoints. Vaswani et al. (2017), section
    6.1. A counter or a mask, which has no mean, is the last one's.

    A run that was stopped and resumed has the mean of one that was not: what it saved between times
    does not count.
    """
    places = [place for place in list_checkpoints(folder) if not is_interim(place)][-count:]
    held = [Folder(place).tensors("model.safetensors") for place in places]
    return {
        name: torch.stack([weights[name].double() for weights in held]).mean(dim=0).to(last.dtype)
        if last.is_floating_point()
        else last
        for name, last in held[-1].items()
    }


def select_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors under `prefix/`, by what comes after it."""
    start = f"{prefix}/"
    return {k.removeprefix(start): v for k, v in tensors.items() if k.startswith(start)}


def add_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors by names that begin with `prefix/`."""
    return {f"{prefix}/{key}": value for key, value in tensors.items()}
