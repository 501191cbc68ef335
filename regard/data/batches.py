"""What a model reads: small frozen bundles of tensors with their masks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Self

import torch
from torch import Tensor

UNSET: Any = None


@dataclass(frozen=True)
class Batch:
    """Tensors whose first axis is the batch.

    Two masks are told apart throughout: a position is real (`mask`), and a target counts in the
    loss (`loss_mask`). A real word need not be asked for, as the first of a document packed
    behind another.
    """

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    @property
    def tokens(self) -> int:
        """How much there is in it, as the speed of training is told."""
        raise NotImplementedError

    def to(self, device: torch.device | str) -> Self:
        return self._each(lambda tensor: tensor.to(device))

    def pick(self, rows: Tensor) -> Self:
        """These rows of the batch."""
        return self._each(lambda tensor: tensor.index_select(0, rows))

    def _default(self, name: str, value: Tensor) -> None:
        if getattr(self, name) is UNSET:
            object.__setattr__(self, name, value)  # frozen, but not made yet

    def _each(self, change: Callable[[Tensor], Tensor]) -> Self:
        held = {f.name: getattr(self, f.name) for f in fields(self)}
        return type(self)(**{k: v if v is None else change(v) for k, v in held.items()})


@dataclass(frozen=True)
class Words(Batch):
    """For language models. Padding stands on the right, in prompts to be continued on the left."""

    inputs: Tensor  # (batch, position) ids that are read
    targets: Tensor  # (batch, position) ids to be predicted, the next ones
    mask: Tensor  # (batch, position), True where a position is real
    documents: Tensor | None = None  # (batch, position), the document each position belongs to
    loss_mask: Tensor = UNSET  # (batch, position), True where a target counts; the mask if left out

    def __post_init__(self) -> None:
        self._default("loss_mask", self.mask)

    @property
    def tokens(self) -> int:
        """How many targets count."""
        return int(self.loss_mask.sum())

    @classmethod
    def of_ids(cls, ids: Tensor) -> Words:
        """Ids (batch, position) to be read, all of them real."""
        return cls(ids, ids, torch.ones_like(ids, dtype=torch.bool))

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
class Pairs(Batch):
    """For translation."""

    source: Tensor  # (batch, source) ids
    source_mask: Tensor  # (batch, source), True where a word is real
    target_input: Tensor  # (batch, target): <s> y₁ … yₙ
    target_output: Tensor  # (batch, target): y₁ … yₙ </s>
    target_mask: Tensor  # (batch, target), True where a position is real
    loss_mask: Tensor = UNSET  # (batch, target), True where a target counts; the mask if left out

    def __post_init__(self) -> None:
        self._default("loss_mask", self.target_mask)

    @property
    def source_lengths(self) -> Tensor:
        """(batch,) words; how much may be said can follow from it."""
        return self.source_mask.sum(dim=1)

    @property
    def tokens(self) -> int:
        """How many targets count."""
        return int(self.loss_mask.sum())


@dataclass(frozen=True)
class LabelledTexts(Batch):
    """For classification: texts, and the number of each one's class."""

    ids: Tensor  # (batch, position)
    mask: Tensor  # (batch, position), True where a word is real
    labels: Tensor  # (batch,)
    loss_mask: Tensor = UNSET  # (batch,), True where a label counts; all of them if left out

    def __post_init__(self) -> None:
        self._default("loss_mask", torch.ones_like(self.labels, dtype=torch.bool))

    @property
    def tokens(self) -> int:
        """How many words are real."""
        return int(self.mask.sum())


@dataclass(frozen=True)
class MarkedTexts(LabelledTexts):
    """For classification of texts between marks: [CLS] first [SEP], or [CLS] first [SEP] second
    [SEP]."""

    segments: Tensor = UNSET  # (batch, position), 1 in the second text; all 0 if left out

    def __post_init__(self) -> None:
        super().__post_init__()
        self._default("segments", torch.zeros_like(self.ids))


@dataclass(frozen=True)
class MaskedTexts(Batch):
    """For encoders that guess hidden words: [CLS] first [SEP], or [CLS] first [SEP] second [SEP].

    With ids and mask alone nothing is to be guessed, only to be read.
    """

    ids: Tensor  # (batch, position), some of them hidden
    mask: Tensor  # (batch, position), True where a word is real
    segments: Tensor = UNSET  # (batch, position), 1 in the second text; all 0 if left out
    targets: Tensor = UNSET  # (batch, position), the words as they were
    loss_mask: Tensor = UNSET  # (batch, position), True where a word is to be guessed; else nowhere
    unrelated: Tensor = UNSET  # (batch,), 0 if the second text follows the first, 1 if it does not
    pair_mask: Tensor = UNSET  # (batch,), True where that is to be told; else nowhere

    def __post_init__(self) -> None:
        rows = self.ids.new_zeros(len(self.ids))
        self._default("segments", torch.zeros_like(self.ids))
        self._default("targets", self.ids)
        self._default("loss_mask", torch.zeros_like(self.mask))
        self._default("unrelated", rows)
        self._default("pair_mask", rows.bool())

    @property
    def tokens(self) -> int:
        """How many words are real."""
        return int(self.mask.sum())


@dataclass(frozen=True)
class LabelledDocuments(LabelledTexts):
    """For classification sentence by sentence: the same with an axis more.

    ids and mask are (batch, sentence, word). Words stand at the front of their sentence, sentences
    at the front of their document.
    """

    @property
    def sentence_mask(self) -> Tensor:
        """(batch, sentence), True where a sentence is real: where it has a word."""
        return self.mask.any(dim=-1)


@dataclass(frozen=True)
class LabelledSpellings(LabelledTexts):
    """For classification by models that read characters: ids are (batch, position, character).

    Sentence start and end stand around the words, and are real positions though no words.
    """

    @property
    def words(self) -> Tensor:
        """(batch, position), True at words: at what has a real position on either side."""
        return inner_positions(self.mask)

    @property
    def tokens(self) -> int:
        return int(self.words.sum())


@dataclass(frozen=True)
class Spellings(Batch):
    """For models that read the characters of words, and guess the words on either side."""

    characters: Tensor  # (batch, position, character), sentence start and end among the positions
    targets: Tensor  # (batch, position) ids of the same words
    mask: Tensor  # (batch, position), True where a position is real

    @property
    def tokens(self) -> int:
        """How many words are to be guessed from one side."""
        return int(self.mask[:, 1:].sum())


def inner_positions(mask: Tensor) -> Tensor:
    """The real positions of each row but the first and the last; (batch, position)."""
    inner = torch.zeros_like(mask)
    inner[:, 1:-1] = mask[:, 2:]
    return inner


@dataclass(frozen=True)
class Bits(Batch):
    """For machines that read and write vectors of bits, step by step."""

    inputs: Tensor  # (batch, time, input), 0 or 1, or numbers
    targets: Tensor  # (batch, time, output), 0 or 1
    mask: Tensor  # (batch, time), True where a step is real
    loss_mask: Tensor = UNSET  # (batch, time), True where an answer counts; the mask if left out

    def __post_init__(self) -> None:
        self._default("loss_mask", self.mask)

    @property
    def tokens(self) -> int:
        """How many steps are real."""
        return int(self.mask.sum())


@dataclass(frozen=True)
class Rows(Batch):
    """For tables of numbers: the inputs of each row, and what is wanted."""

    inputs: Tensor  # (batch, input), numbers
    targets: Tensor  # (batch,): a number, or the number of a class
    loss_mask: Tensor = UNSET  # (batch,), True where a target counts; all of them if left out

    def __post_init__(self) -> None:
        self._default("loss_mask", torch.ones_like(self.targets, dtype=torch.bool))

    @property
    def tokens(self) -> int:
        """How many rows there are."""
        return len(self)
