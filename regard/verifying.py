"""Proofs about a run, each with the largest difference it found."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.data.batches import Pairs, Words
from regard.run import Run


@dataclass(frozen=True)
class Proof:
    """What was claimed, how far off it was, and how far it may be."""

    claim: str
    difference: float
    tolerance: float

    @property
    def holds(self) -> bool:
        return self.difference <= self.tolerance


@torch.no_grad()
def verify(run: Run, seed: int = 0) -> list[Proof]:
    """Cached steps give the whole run's logits, and neighbours in a batch change nothing."""
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


def _ids(run: Run, rows: int, length: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(run.tokenizer.size, (rows, length), generator=generator)


def _largest(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).abs().max())
