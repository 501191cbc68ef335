"""What a model reads: small frozen bundles of tensors with their masks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class _Batch:
    def to(self, device: torch.device | str) -> Self:
        return self._each(lambda tensor: tensor.to(device))

    def pick(self, rows: Tensor) -> Self:
        """These rows of the batch."""
        return self._each(lambda tensor: tensor.index_select(0, rows))

    def _each(self, change: Callable[[Tensor], Tensor]) -> Self:
        held = {f.name: getattr(self, f.name) for f in fields(self)}
        return type(self)(**{k: v if v is None else change(v) for k, v in held.items()})


@dataclass(frozen=True)
class Words(_Batch):
    """For language models. Padding stands on the right, in prompts to be continued on the left."""

    inputs: Tensor  # (batch, position) ids that are read
    targets: Tensor  # (batch, position) ids to be predicted, the next ones
    mask: Tensor  # (batch, position), True where a position is real
    documents: Tensor | None = None  # (batch, position), the document each position belongs to

    @property
    def tokens(self) -> int:
        """How many targets count."""
        return int(self.mask.sum())

    @classmethod
    def prompts(cls, prompts: list[list[int]], filler: int = 0) -> Words:
        """Prompts of different length, padded on the left so that their last ids stand together."""
        longest = max((len(ids) for ids in prompts), default=0)
        padded = [[filler] * (longest - len(ids)) + ids for ids in prompts]
        real = [[False] * (longest - len(ids)) + [True] * len(ids) for ids in prompts]
        inputs = torch.tensor(padded, dtype=torch.long).view(len(prompts), longest)
        mask = torch.tensor(real, dtype=torch.bool).view(len(prompts), longest)
        return cls(inputs, inputs, mask)


@dataclass(frozen=True)
class Pairs(_Batch):
    """For translation."""

    source: Tensor  # (batch, source) ids
    source_mask: Tensor  # (batch, source), True where a word is real
    target_input: Tensor  # (batch, target): <s> y₁ … yₙ
    target_output: Tensor  # (batch, target): y₁ … yₙ </s>
    target_mask: Tensor  # (batch, target), True where a target counts

    @property
    def tokens(self) -> int:
        """How many targets count."""
        return int(self.target_mask.sum())
