"""Positions of words in rows that have different lengths or hold several documents.

A recurrent model must not read the padding on the left of a prompt. `LeftAligned` moves the words
to the front, so that they are padded on the right alone, and what comes out is moved back.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.data.batches import Words


@dataclass(frozen=True)
class LeftAligned:
    """Ids moved to the front of their rows, so that all padding is on the right."""

    ids: Tensor  # (batch, position)
    lengths: Tensor | None = None  # (batch,), None when every row is full
    shift: Tensor | None = None  # (batch,), how far a row was moved; None when none was

    @classmethod
    def from_batch(cls, batch: Words) -> LeftAligned:
        """The words of a batch that may be padded on either side."""
        refuse_packed(batch)
        ids, mask = batch.inputs, batch.mask
        if bool(mask.all()):
            return cls(ids)
        lengths = mask.sum(dim=1)
        if bool(mask[:, 0].all()):
            return cls(ids, lengths)
        shift = mask.long().argmax(dim=1)  # the first word; 0 for a row without any
        return cls(_roll_rows(ids, shift), lengths, shift)

    def restore(self, vectors: Tensor) -> Tensor:
        """Move what was computed for each word (batch, position, size) back to its own place."""
        return vectors if self.shift is None else _roll_rows(vectors, -self.shift)

    def take_last_ids(self, before: Tensor, count: int) -> Tensor:
        """The last `count` ids of each row, when `before` (batch, some) came before these."""
        return take_last(before, self.ids, self.lengths, count)


def refuse_packed(batch: Words) -> None:
    """Refuse rows that hold several documents, for models that carry a state along the row."""
    if batch.documents is not None:
        raise ValueError(
            "documents are packed in the rows of this batch, and a model that reads from left "
            "to right would carry one into the next: give it one document a row"
        )


def take_last(before: Tensor, new: Tensor, lengths: Tensor | None, count: int) -> Tensor:
    """The last `count` of what stood before (batch, some, …) and of the new (batch, position, …).

    Of the new ones only the first `lengths` count. Rows of the result end together.
    """
    joint = torch.cat([before, new], dim=1)  # (batch, some + position, …)
    count = min(count, joint.shape[1])
    if lengths is None:
        return joint[:, joint.shape[1] - count :]
    ends = before.shape[1] + lengths
    positions = ends.unsqueeze(1) + torch.arange(-count, 0, device=ends.device)  # (batch, count)
    return joint[_row_indices(positions), positions.clamp(min=0)]


def lengths_from_first_word(mask: Tensor) -> Tensor | None:
    """How many positions of each row (batch,) are left from its first word on; None for all.

    Padding on the right is counted among them; a model that never looks that way need not care.
    """
    if mask.shape[1] == 0 or bool(mask[:, 0].all()):
        return None
    first = torch.where(mask.any(dim=1), mask.long().argmax(dim=1), mask.shape[1])
    return mask.shape[1] - first


def document_positions(documents: Tensor) -> Tensor:
    """Positions within packed documents: how many words of its document stand before each word.

    (batch, position) → the same shape.
    """
    positions = torch.arange(documents.shape[1], device=documents.device).expand(documents.shape)
    begins = torch.ones_like(documents, dtype=torch.bool)
    begins[:, 1:] = documents[:, 1:] != documents[:, :-1]
    return positions - positions.masked_fill(~begins, 0).cummax(dim=1).values


def _roll_rows(rows: Tensor, shift: Tensor) -> Tensor:
    """Each row (position, …) moved left by its shift; what falls off comes back on the right."""
    length = rows.shape[1]
    positions = (torch.arange(length, device=rows.device) + shift.unsqueeze(1)) % length
    return rows[_row_indices(positions), positions]


def _row_indices(positions: Tensor) -> Tensor:
    return torch.arange(len(positions), device=positions.device).unsqueeze(1)
