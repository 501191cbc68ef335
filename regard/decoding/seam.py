"""The protocol between a decoder and every model that predicts a next word: start, step, pick."""

from __future__ import annotations

from typing import Generic, Protocol, Self, TypeVar

import torch
from torch import Tensor

from regard.decoding.ancestry import Ancestry


class State(Protocol):
    """What is being said, a row for each sentence: a hidden vector, a cache, a tape."""

    def pick(self, rows: Tensor) -> Self:
        """The state of these rows in this order; a row may come more than once, or not at all."""


B = TypeVar("B")
B_contra = TypeVar("B_contra", contravariant=True)
S = TypeVar("S", bound=State)


class Model(Protocol[B_contra, S]):
    """Whatever can be continued word by word."""

    def start(self, batch: B_contra) -> S:
        """The state before the first word."""

    def step(self, ids: Tensor, state: S) -> tuple[Tensor, S]:
        """Last words (batch,) → logits of the next (batch, vocabulary), and the state after."""


class Stepper(Generic[B, S]):
    """Runs a model step by step, and notes in an `Ancestry` which row continues which."""

    def __init__(self, model: Model[B, S], batch: B, first: Tensor, ancestry: Ancestry | None):
        if first.dim() != 1 or first.dtype != torch.long:
            raise ValueError(
                f"first ({first.dtype} {tuple(first.shape)}) must be long ids (batch,)"
            )
        self.ancestry = Ancestry() if ancestry is None else ancestry
        if self.ancestry.parents:
            raise ValueError("ancestry is that of another decoding already: hand in a new one")
        self.model = model
        self.state = model.start(batch)
        self.parents = torch.arange(len(first), device=first.device)  # (row,)

    @property
    def previous_parents(self) -> Tensor:
        """For each row of the last step (row,) its row of the step before."""
        return self.ancestry.parents[-1]

    def continue_with(self, rows: Tensor) -> None:
        """Go on with these rows of the last step, each of which may come more than once."""
        # Picking copies, a cache above all, and most steps of most searches change nothing.
        if len(rows) and not torch.equal(rows, self.parents):
            self.state = self.state.pick(rows)
            self.parents = rows

    def step(self, ids: Tensor) -> Tensor:
        """log P (row, vocabulary) of the next words; -inf alone where nothing can follow."""
        number = len(self.ancestry.parents)
        logits, self.state = self.model.step(ids, self.state)
        if logits.dim() != 2 or len(logits) != len(ids) or not logits.shape[1]:
            raise ValueError(
                f"logits {tuple(logits.shape)} of step {number} must be ({len(ids)}, vocabulary)"
            )
        self.ancestry.parents.append(self.parents)
        self.parents = torch.arange(len(ids), device=ids.device)
        precise = torch.promote_types(logits.dtype, torch.float32)
        log_probs = logits.log_softmax(dim=-1, dtype=precise)
        # One NaN or inf makes NaN of its whole row, so that looking at one column is enough.
        nan_rows = log_probs[:, 0].isnan()
        if not bool(nan_rows.any()):
            return log_probs
        return _repair_nan_rows(log_probs, logits, nan_rows, number)


def _repair_nan_rows(log_probs: Tensor, logits: Tensor, nan_rows: Tensor, number: int) -> Tensor:
    """Rows of -inf alone, which log_softmax makes NaN, are -inf again; others are refused."""
    impossible = logits.isneginf().all(dim=-1)
    wrong = (nan_rows & ~impossible).nonzero().flatten().tolist()
    if wrong:
        raise ValueError(
            f"logits of step {number} hold NaN or inf in row {wrong[0]} of {len(log_probs)}: "
            "no next word can be chosen from them"
        )
    return log_probs.masked_fill(impossible.unsqueeze(1), -torch.inf)
