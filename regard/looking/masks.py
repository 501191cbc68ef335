"""Symbolic masks in a record: what may be seen, in a few words instead of a table.

{"kind": "causal"} or {"kind": "and", "left": {"kind": "causal"}, "right": {"kind": "padding", …}}
"""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from regard.attention import Causal, Dense, Mask, Packed, Padding, Prefix, StrictlyCausal, Window
from regard.attention.masks import Both, Either

Length = Annotated[int, Field(ge=0, lt=1 << 62)]


class Part(BaseModel):
    """A piece of the file; a key nobody knows is refused rather than lost."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class StoredCausal(Part):
    kind: Literal["causal", "strictly-causal"]


class StoredWindow(Part):
    kind: Literal["window"]
    before: Length
    after: Length


class StoredPadding(Part):
    kind: Literal["padding"]
    length: Length
    side: Literal["left", "right"]


class StoredPrefix(Part):
    kind: Literal["prefix"]
    length: Length


class StoredPacked(Part):
    kind: Literal["packed"]
    documents: list[Length]  # of each key


class StoredDense(Part):
    kind: Literal["dense"]  # written out, as the tensor `mask`


class StoredPair(Part):
    kind: Literal["and", "or"]
    left: StoredMask
    right: StoredMask


StoredMask = Annotated[
    StoredCausal
    | StoredWindow
    | StoredPadding
    | StoredPrefix
    | StoredPacked
    | StoredDense
    | StoredPair,
    Field(discriminator="kind"),
]


def describe_mask(mask: Mask) -> StoredMask | None:
    """The words for a mask of one row of the batch; None if it has to be written out."""
    match mask:
        case Causal():
            return StoredCausal(kind="causal")
        case StrictlyCausal():
            return StoredCausal(kind="strictly-causal")
        case Window():
            return StoredWindow(kind="window", before=mask.before, after=mask.after)
        case Padding() if mask.lengths.numel() == 1:
            return StoredPadding(kind="padding", length=int(mask.lengths), side=_side(mask))
        case Prefix() if mask.lengths.numel() == 1:
            return StoredPrefix(kind="prefix", length=int(mask.lengths))
        case Packed() if len(mask.documents) == 1 and int(mask.documents.min()) >= 0:
            return StoredPacked(kind="packed", documents=mask.documents[0].tolist())
        case Both() | Either():
            left, right = describe_mask(mask.left), describe_mask(mask.right)
            if left is None or right is None:
                return None
            return StoredPair(
                kind="and" if isinstance(mask, Both) else "or", left=left, right=right
            )
    return None


def restore_mask(stored: StoredMask, table: Tensor | None) -> Mask:
    """The mask that these words describe; `table` is the one that was written out."""
    match stored:
        case StoredCausal():
            return Causal() if stored.kind == "causal" else StrictlyCausal()
        case StoredWindow():
            return Window(stored.before, stored.after)
        case StoredPadding():
            return Padding(torch.tensor([stored.length]), stored.side)
        case StoredPrefix():
            return Prefix(torch.tensor([stored.length]))
        case StoredPacked():
            return Packed(torch.tensor([stored.documents], dtype=torch.int64))
        case StoredPair():
            left, right = restore_mask(stored.left, table), restore_mask(stored.right, table)
            return left & right if stored.kind == "and" else left | right
    if table is None:
        raise ValueError("its mask is missing")
    return Dense(table.unsqueeze(0))


def _side(mask: Padding) -> Literal["left", "right"]:
    return "left" if mask.side == "left" else "right"
