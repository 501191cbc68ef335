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

from regard.data.batches import Pairs, Words
from regard.data.feeds import Feed
from regard.run import Run
from regard.training.placement import Placement
from regard.training.recipe import DataConfig, Recipe
from regard.training.record import read_record
from regard.training.saving import newest_checkpoint
from regard.training.tasks import Work, build, prepare
from regard.training.train import Probe, learn

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
    return [*answering(run, seed), resuming(run, files)]


@torch.no_grad()
def answering(run: Run, seed: int = 0) -> list[Proof]:
    """What is proved with the weights as they are."""
    if run.recipe.task.kind == "translation":
        return [_translator_steps(run, seed), _translator_batch(run, seed)]
    proofs = [_batch(run, seed)]
    return [_steps(run, seed), *proofs] if isinstance(run.model, torch.nn.Module) else proofs


def _steps(run: Run, seed: int) -> Proof:
    ids = _ids(run, 3, 12, seed)
    whole = run.logits(ids)
    return Proof("one word at a time = all at once", _largest(_stepped(run, ids), whole), 1e-4)


def _batch(run: Run, seed: int) -> Proof:
    """Rows of different length, padded on the left, against each row alone."""
    rows = [_ids(run, 1, length, seed + length)[0].tolist() for length in (3, 7, 12)]
    together, _ = _after(run, rows)
    alone = torch.cat([_after(run, [row])[0] for row in rows])
    return Proof("a batch of 3 = 3 batches of 1", _largest(together, alone), 1e-4)


def _after(run: Run, rows: list[list[int]]) -> tuple[Tensor, object]:
    """The logits after each row."""
    state = run.model.start(Words.prompts([row[:-1] for row in rows]))
    return run.model.step(torch.tensor([row[-1] for row in rows]), state)


def _stepped(run: Run, ids: Tensor) -> Tensor:
    state = run.model.start(Words.prompts([[] for _ in ids]))
    steps = []
    for column in ids.unbind(dim=1):
        logits, state = run.model.step(column, state)
        steps.append(logits)
    return torch.stack(steps, dim=1)


def _translator_steps(run: Run, seed: int) -> Proof:
    pairs = _pairs(run, [(5, 7), (3, 4), (8, 6)], seed)
    whole = run.model(pairs)
    state = run.model.start(pairs)
    steps = []
    for column in pairs.target_input.unbind(dim=1):
        logits, state = run.model.step(column, state)
        steps.append(logits)
    real = pairs.target_mask
    found = torch.stack(steps, dim=1)
    return Proof("one word at a time = all at once", _largest(found[real], whole[real]), 1e-4)


def _translator_batch(run: Run, seed: int) -> Proof:
    sizes = [(5, 7), (3, 4), (8, 6)]
    pairs = _pairs(run, sizes, seed)
    together = run.model(pairs)
    worst = 0.0
    for row, (source, target) in enumerate(sizes):
        alone = Pairs(
            pairs.source[row : row + 1, :source],
            pairs.source_mask[row : row + 1, :source],
            pairs.target_input[row : row + 1, : target + 1],
            pairs.target_output[row : row + 1, : target + 1],
            pairs.target_mask[row : row + 1, : target + 1],
        )
        worst = max(worst, _largest(run.model(alone)[0], together[row, : target + 1]))
    return Proof("a batch of 3 = 3 batches of 1", worst, 1e-4)


def _pairs(run: Run, sizes: list[tuple[int, int]], seed: int) -> Pairs:
    sources = [_ids(run, 1, s, seed + s)[0].tolist() for s, _ in sizes]
    targets = [_ids(run, 1, t, seed + 100 + t)[0].tolist() for _, t in sizes]
    return run.pairs(sources, targets)


def resuming(run: Run, files: Sequence[str] = ()) -> Proof:
    """A few steps of the run's recipe, undisturbed, and once stopped and resumed: weights,
    optimizer memory, random state and record, but for its times."""
    if not isinstance(run.model, torch.nn.Module):
        return Proof("resume", untried="n-grams are counted in one go, without steps")
    try:
        work = prepare(_brief(run.recipe, files), Path())
    except ValueError as reason:
        if files:
            raise
        return Proof("resume", untried=str(reason))
    with tempfile.TemporaryDirectory() as place:
        whole, halved = Path(place) / "whole", Path(place) / "halved"
        _learned(work, whole)
        _learned(work, halved, probe=_stopping)
        _learned(work, halved, resume=True)
        return Proof("stopped and resumed = undisturbed", _apart(whole, halved))


def _brief(recipe: Recipe, files: Sequence[str]) -> Recipe:
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
    return replace(recipe, training=training, data=_named(recipe.data, files))


def _named(data: DataConfig, files: Sequence[str]) -> DataConfig:
    """The data with its text in these files instead."""
    if not files:
        return data
    train = files[0] if len(files) == 1 else list(files)
    return replace(data, generator=None, train=train, valid=None, valid_share=0.0)


def _learned(
    work: Work,
    folder: Path,
    resume: bool = False,
    probe: Probe | None = None,
) -> None:
    folder.mkdir(exist_ok=True)
    valid = work.valid and _Beginning(work.valid)
    fresh = replace(work, model=build(work.recipe, work.tokenizer), valid=valid)
    learn(fresh, folder, Placement.here(), resume, lambda event, values: None, probe)


def _stopping(work: Work, folder: Path, step: int) -> None:
    """Ctrl-C after a few steps."""
    if step == STOP:
        signal.raise_signal(signal.SIGINT)


class _Beginning:
    """The first batches of a feed: enough for a loss that tells two models apart."""

    def __init__(self, feed: Feed):
        self.feed, self.continues = feed, feed.continues

    @property
    def summary(self) -> str:
        return self.feed.summary

    def batches(self, epoch: int) -> int:
        return min(2, self.feed.batches(epoch))

    def batch(self, epoch: int, index: int) -> Words | Pairs:
        return self.feed.batch(epoch, index)


def _apart(one: Path, other: Path) -> float:
    """The largest difference between what two runs left; ∞ if it cannot be compared."""
    held = [newest_checkpoint(folder / "checkpoints") for folder in (one, other)]
    assert held[0] is not None and held[1] is not None
    (mine, _), (theirs, _) = held[0], held[1]
    if mine.progress.step != theirs.progress.step:
        return math.inf
    return max(
        _tensors_apart(mine.weights, theirs.weights),
        _tensors_apart(mine.memory, theirs.memory),
        _tensors_apart(mine.extras, theirs.extras),
        _lines_apart(*(read_record(folder / "record.jsonl") for folder in (one, other))),
    )


def _tensors_apart(mine: dict[str, Tensor], theirs: dict[str, Tensor]) -> float:
    if {k: t.shape for k, t in mine.items()} != {k: t.shape for k, t in theirs.items()}:
        return math.inf
    return _worst(_largest(mine[k].double(), theirs[k].double()) for k in mine if mine[k].numel())


def _lines_apart(mine: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> float:
    if [line.keys() for line in mine] != [line.keys() for line in theirs]:
        return math.inf
    pairs = [
        (value, there[key])
        for here, there in zip(mine, theirs, strict=True)
        for key, value in here.items()
        if key != "seconds"
    ]
    return _worst(_values_apart(a, b) for a, b in pairs)


def _values_apart(mine: Any, theirs: Any) -> float:
    if isinstance(mine, int | float) and isinstance(theirs, int | float):
        return abs(mine - theirs)
    return 0.0 if mine == theirs else math.inf


def _worst(differences: Iterable[float]) -> float:
    return max((d if d == d else math.inf for d in differences), default=0.0)


def _ids(run: Run, rows: int, length: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(run.tokenizer.size, (rows, length), generator=generator)


def _largest(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).abs().max())
