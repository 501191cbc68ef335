"""Proofs about a run, each with the largest difference it found."""

from __future__ import annotations

import math
import signal
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.config import Recipe
from regard.data.batches import Batch
from regard.data.config import DataConfig
from regard.data.feeds import Feed
from regard.running.run import Run
from regard.training.placement import Placement
from regard.training.preparing import Work, build, prepare
from regard.training.record import read_record
from regard.training.saving import newest_checkpoint
from regard.training.starting import load_start
from regard.training.train import Probe, train_by_gradient

TOLERANCE = 1e-4
STEPS, STOP = 6, 3  # of the proof that a stopped run goes on as if it had not been


@dataclass(frozen=True)
class Proof:
    """What was claimed, how far off it was, and how far it may be."""

    claim: str
    difference: float = 0.0
    tolerance: float = 0.0
    untried: str = ""  # why, if it could not be tried

    @property
    def holds(self) -> bool:
        return self.difference <= self.tolerance

    def __str__(self) -> str:
        if self.untried:
            return f"{self.claim}: not tried, {self.untried}"
        verdict = "holds" if self.holds else "FAILS"
        return f"{self.claim:<33} {verdict}: largest difference {self.difference:.2e}"


def verify(run: Run, seed: int = 0, files: Sequence[str] = ()) -> list[Proof]:
    """Cached steps give the whole run's logits, neighbours in a batch change nothing, and a run
    of this recipe that is stopped and resumed ends like one that is not.

    The last needs the data of the recipe, or `files` in their place.
    """
    return [*check_answers(run, seed), check_resume(run, files)]


@torch.no_grad()
def check_answers(run: Run, seed: int = 0) -> list[Proof]:
    """What the task claims about the weights as they are."""
    checks = run.task.checks(run.model, run.resources, seed)
    return [Proof(c.claim, _largest(c.found, c.expected), TOLERANCE) for c in checks]


def check_resume(run: Run, files: Sequence[str] = ()) -> Proof:
    """A few steps of the run's recipe, undisturbed, and once stopped and resumed: weights,
    optimizer memory, random state and record, but for its times."""
    if not isinstance(run.model, torch.nn.Module):
        return Proof("resume", untried="the model learns in one go, without steps")
    try:
        work = prepare(_shorten(run.recipe, files))
    except ValueError as reason:
        if files:
            raise
        return Proof("resume", untried=str(reason))
    with tempfile.TemporaryDirectory() as place:
        whole, halved = Path(place) / "whole", Path(place) / "halved"
        _train(work, whole)
        _train(work, halved, probe=_stop_early)
        _train(work, halved, resume=True)
        return Proof("stopped and resumed = undisturbed", _difference(whole, halved))


def _shorten(recipe: Recipe, files: Sequence[str]) -> Recipe:
    """The recipe for a few steps. Its evaluation and its log fall on different steps, so that the
    stop comes when a loss is half summed up."""
    training = replace(
        recipe.training,
        epochs=None,
        steps=STEPS,
        patience=None,
        evaluate_every=STOP,
        save_every=STOP,
        log_every=2,
        compile=False,
        tensorboard=False,
    )
    # The first batches are enough for a loss, and not for what compares whole corpora.
    evaluation = replace(recipe.evaluation, select="loss")
    data = _name_files(recipe.data, files)
    return replace(recipe, training=training, evaluation=evaluation, data=data)


def _name_files(data: DataConfig, files: Sequence[str]) -> DataConfig:
    """The data with its text in these files instead."""
    if not files:
        return data
    train = files[0] if len(files) == 1 else list(files)
    return replace(data, generator=None, train=train, valid=None, valid_share=0.0)


def _train(
    work: Work,
    folder: Path,
    resume: bool = False,
    probe: Probe | None = None,
) -> None:
    folder.mkdir(exist_ok=True)
    valid = work.valid and _FirstBatches(work.valid)
    model = build(work.recipe, work.task, work.resources)
    load_start(model, work.recipe)
    fresh = replace(work, model=model, valid=valid)
    placement = Placement.from_environment()
    train_by_gradient(fresh, folder, placement, resume, lambda event, values: None, probe)


def _stop_early(work: Work, folder: Path, step: int) -> None:
    """Ctrl-C after a few steps."""
    if step == STOP:
        signal.raise_signal(signal.SIGINT)


class _FirstBatches:
    """The first batches of a feed: enough for a loss that tells two models apart."""

    def __init__(self, feed: Feed[Batch]):
        self.feed, self.continues = feed, feed.continues

    @property
    def summary(self) -> str:
        return self.feed.summary

    def batches(self, epoch: int) -> int:
        return min(2, self.feed.batches(epoch))

    def batch(self, epoch: int, index: int) -> Batch:
        return self.feed.batch(epoch, index)


def _difference(one: Path, other: Path) -> float:
    """The largest difference between what two runs left; ∞ if it cannot be compared."""
    held = [newest_checkpoint(folder / "checkpoints") for folder in (one, other)]
    assert held[0] is not None and held[1] is not None
    (mine, _), (theirs, _) = held[0], held[1]
    if mine.progress.step != theirs.progress.step:
        return math.inf
    return max(
        _tensor_difference(mine.weights, theirs.weights),
        _tensor_difference(mine.optimizer, theirs.optimizer),
        _tensor_difference(mine.extras, theirs.extras),
        _record_difference(*(read_record(folder / "record.jsonl") for folder in (one, other))),
    )


def _tensor_difference(mine: dict[str, Tensor], theirs: dict[str, Tensor]) -> float:
    if {k: t.shape for k, t in mine.items()} != {k: t.shape for k, t in theirs.items()}:
        return math.inf
    return _worst(_largest(mine[k].double(), theirs[k].double()) for k in mine if mine[k].numel())


def _record_difference(mine: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> float:
    if [line.keys() for line in mine] != [line.keys() for line in theirs]:
        return math.inf
    pairs = [
        (value, other[key])
        for line, other in zip(mine, theirs, strict=True)
        for key, value in line.items()
        if key != "seconds"
    ]
    return _worst(_value_difference(a, b) for a, b in pairs)


def _value_difference(mine: Any, theirs: Any) -> float:
    if isinstance(mine, int | float) and isinstance(theirs, int | float):
        return abs(mine - theirs)
    return 0.0 if mine == theirs else math.inf


def _worst(differences: Iterable[float]) -> float:
    return max((d if d == d else math.inf for d in differences), default=0.0)


def _largest(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).abs().max())
