"""Sequences of bits to be copied, repeated or recalled: what a memory is for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import Look, Stages, watch
from regard.data.batches import Bits
from regard.data.bits import PATTERNS, BitFeed, copy_batch
from regard.data.feeds import Feed
from regard.naming import suggest
from regard.tasks.objective import Objective, Outcome, Sum
from regard.tasks.resources import Resources
from regard.tasks.task import Check, Task
from regard.text import Tokenizer

SEEDS = {"train": 0, "valid": 1, "test": 2}
MAX_LENGTH = 2_000  # of an episode to be looked at
WEIGHTINGS = ("write weights", "read weights")  # what is over the places of a memory
VISITED = 0.01
"""The least weight with which a head counts as having been at a place."""


@dataclass(frozen=True, kw_only=True)
class BitConfig:
    """The [task] section: which episodes, and how long they are in training and afterwards."""

    pattern: str = "copy"  # or "repeat-copy", "recall"
    width: int = 8  # bits of a vector
    shortest: int = 1  # of the sequences in training
    longest: int = 20
    valid_length: int = 20
    test_length: int = 40  # longer than any in training
    shortest_repeat: int = 1  # of repeat-copy
    longest_repeat: int = 10

    def __post_init__(self) -> None:
        if self.pattern not in PATTERNS:
            hint = suggest(self.pattern, PATTERNS)
            raise ValueError(f"pattern ({self.pattern!r}) is not known; {hint}")
        for name in ("width", "shortest", "longest", "valid_length", "test_length"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} ({getattr(self, name)}) must be 1 or more")
        for low, high in (("shortest", "longest"), ("shortest_repeat", "longest_repeat")):
            if not 1 <= getattr(self, low) <= getattr(self, high):
                raise ValueError(
                    f"{low} ({getattr(self, low)}) must be 1 or more, and at most {high} "
                    f"({getattr(self, high)})"
                )


@dataclass(frozen=True)
class Episodes:
    """Which episodes a split has: made when they are wanted."""

    lengths: tuple[int, int]
    seed: int


class BitSequences(Task[Episodes]):
    """p(bits wanted | all vectors read so far), bit by bit

    Reads no text, so that a run of it has no tokenizer. Graves et al. (2014), section 4.
    """

    config = BitConfig
    feeds = ("episodes",)
    size_names = ("inputs", "outputs")
    metrics = ("bits", "exact_match", "wrong_bits", "loss")
    select = "loss"

    def read(self, split: str) -> Episodes:
        settings = self.settings
        lengths = {
            "train": (settings.shortest, settings.longest),
            "valid": (settings.valid_length, settings.valid_length),
            "test": (settings.test_length, settings.test_length),
        }[split]
        return Episodes(lengths, 3 * self.recipe.seed + SEEDS[split])

    def read_files(self, files: Sequence[str]) -> Episodes:
        raise ValueError(f"bit sequences are made, not read: --data {files[0]} has no use")

    def examples(self, examples: Iterable[Any]) -> Episodes:
        """One number: the length of the sequences."""
        (length,) = examples
        return Episodes((length, length), 3 * self.recipe.seed + SEEDS["test"])

    def prepare(self, train: Episodes, tokenizer: Tokenizer | None) -> Resources:
        return Resources()

    def sizes(self, resources: Resources) -> dict[str, int]:
        pattern, width = PATTERNS[self.settings.pattern], self.settings.width
        return {"inputs": width + pattern.extra_inputs, "outputs": width + pattern.extra_outputs}

    def training_feed(self, corpus: Episodes, resources: Resources) -> Feed[Bits]:
        training = self.recipe.training
        return self._feed(corpus, training.batch, -(-self.recipe.data.examples // training.batch))

    def scoring_feed(self, corpus: Episodes, resources: Resources) -> Feed[Bits]:
        rows = self.recipe.evaluation.batch
        return self._feed(corpus, rows, -(-self.recipe.data.valid_examples // rows))

    def _feed(self, corpus: Episodes, rows: int, batches: int) -> BitFeed:
        settings = self.settings
        repeats = (settings.shortest_repeat, settings.longest_repeat)
        pattern = PATTERNS[settings.pattern]
        return BitFeed(pattern, settings.width, corpus.lengths, repeats, rows, batches, corpus.seed)

    def objective(self, model: nn.Module) -> Objective[Bits]:
        return BitLikelihood(model)

    def look(
        self, model: nn.Module, resources: Resources, text: str, target: str | None = None
    ) -> list[Look]:
        """One episode over time, then every stage of the heads' addressing.

        `text` are vectors of bits to copy, as "10010011 01100001", or the length of an episode to
        make up.
        """
        batch, steppable = self._episode(text), cast(Any, model)
        state, logits, states = steppable.start(batch), [], []
        with watch(model) as seen:
            for inputs in batch.inputs.unbind(dim=1):
                answer, state = steppable.step(inputs, state)
                logits.append(answer)
                states.append(state)
        steps = name_steps(batch, self.settings.width)
        outputs = torch.stack(logits, dim=1).sigmoid()  # (batch, time, output)
        looks = [episode_look(batch, outputs, states, steps)]
        for path, calls in seen.items():
            looks += stage_looks(path, calls, steps)
        return looks

    def _episode(self, text: str) -> Bits:
        width = self.settings.width
        words = text.split()
        if len(words) == 1 and words[0].isdecimal() and len(words[0]) != width:
            corpus = self.examples([self._length(words[0])])
            return self._feed(corpus, 1, 1).batch(0, 0)
        if self.settings.pattern != "copy":
            raise ValueError(
                f"text ({text[:40]!r}) must be a length: episodes of {self.settings.pattern} are "
                "made up"
            )
        if not words or any(len(word) != width or set(word) - set("01") for word in words):
            like = ("01" * width)[:width]
            raise ValueError(
                f"text ({text[:40]!r}) must be vectors of {width} bits, as {like}, or their number"
            )
        sequence = torch.tensor([[[float(bit) for bit in word] for word in words]])
        return copy_batch(sequence, 1, repeats_told=False)

    def _length(self, digits: str) -> int:
        if len(digits) > len(str(MAX_LENGTH)) or not 1 <= int(digits) <= MAX_LENGTH:
            raise ValueError(f"text ({digits[:40]!r}) must be a length from 1 to {MAX_LENGTH:,}")
        return int(digits)

    def checks(self, model: Any, resources: Resources, seed: int) -> Iterator[Check]:
        batch = self._feed(Episodes((5, 5), seed), 3, 1).batch(0, 0)
        whole, state, steps = model(batch), model.start(batch), []
        for inputs in batch.inputs.unbind(dim=1):
            logits, state = model.step(inputs, state)
            steps.append(logits)
        yield Check("one step at a time = all at once", torch.stack(steps, dim=1), whole)
        alone = [model(batch.pick(torch.tensor([row]))) for row in range(3)]
        yield Check("a batch of 3 = 3 batches of 1", whole, torch.cat(alone))


class BitLikelihood(Objective[Bits]):
    """loss = −Σ log p(bit), in nats a bit; `bits` is the same in bits a sequence"""

    def counts(self, batch: Bits) -> dict[str, int]:
        return {"loss": int(batch.loss_mask.sum()) * batch.targets.shape[-1]}

    def forward(self, batch: Bits, state: Any = None) -> Outcome:
        counted = batch.loss_mask
        logits = self.model(batch)[counted]  # (answer, output)
        wanted = batch.targets[counted]
        loss = F.binary_cross_entropy_with_logits(logits, wanted, reduction="sum")
        wrong = self._count_wrong(logits, wanted, counted)  # (batch,)
        rows = len(batch)
        reports = {
            "wrong_bits": Sum(wrong.sum(), rows),
            "exact_match": Sum((wrong == 0).sum(), rows),
            "bits": Sum(loss.detach() / math.log(2), rows),
        }
        return Outcome({"loss": loss}, reports)

    def _count_wrong(self, logits: Tensor, wanted: Tensor, counted: Tensor) -> Tensor:
        """How many bits of each row are on the wrong side."""
        wrong = ((logits > 0) != (wanted > 0.5)).sum(dim=-1)  # (answer,)
        return torch.zeros(counted.shape, dtype=wrong.dtype).masked_scatter(counted, wrong).sum(1)

    def metrics(self, means: Mapping[str, float]) -> dict[str, float]:
        names = ("bits", "exact_match", "wrong_bits", "loss")
        return {name: means[name] for name in names}


def name_steps(batch: Bits, width: int) -> list[str]:
    """in 0, in 1, …, mark, out 0, …: what happens at each step of the first episode."""
    names, counts = [], {"in": 0, "out": 0}
    marked = batch.inputs[0, :, width:].any(dim=-1)
    for asked, mark in zip(batch.loss_mask[0].tolist(), marked.tolist(), strict=True):
        if mark and not asked:
            names.append("mark")
            continue
        side = "out" if asked else "in"
        names.append(f"{side} {counts[side]}")
        counts[side] += 1
    return names


def count_visited(weights: Tensor) -> int:
    """The places of a memory up to the last one a head has been at, (time, place) → number."""
    return 1 + int((weights > VISITED).any(dim=0).nonzero().max())


def episode_look(batch: Bits, outputs: Tensor, states: Sequence[Any], steps: Sequence[str]) -> Look:
    """The first episode of a batch: what went in, what came out, and what its memory did."""
    asked = batch.loss_mask[0]
    maps = {"inputs": batch.inputs[0], "outputs": outputs[0]}  # (time, size) each
    told = [state.maps() for state in states]
    for name, first in told[0].items():
        heads = first.shape[1]
        for head in range(heads):
            own = torch.stack([each[name][0, head] for each in told])
            maps[f"{name} {head}" if heads > 1 else name] = own
    # Places no head has been at would fill most of the picture.
    weightings = [name for name in maps if name.startswith(WEIGHTINGS)]
    visited = max((count_visited(maps[name]) for name in weightings), default=0)
    maps |= {name: maps[name][:, :visited] for name in weightings}
    rows = max(values.shape[1] for values in maps.values())
    table = torch.zeros(len(maps), rows, len(steps))
    shown = torch.zeros_like(table, dtype=torch.bool)
    for place, values in enumerate(maps.values()):
        table[place, : values.shape[1]] = values.T
        shown[place, : values.shape[1]] = True
    shown[1] &= asked  # what is said before the answer counts for nothing
    return Look.of_weights(
        table,
        mask=shown,
        heads=tuple(maps),
        queries=[str(row) for row in range(rows)],
        keys=steps,
        path="episode",
        kind="episode",
    )


def stage_looks(path: str, calls: Sequence[Any], queries: Sequence[str]) -> list[Look]:
    """The four stages of heads over time: (head, step, slot) each."""
    stages = [call.carried for call in calls]
    assert all(isinstance(each, Stages) for each in stages)
    slots = [str(place) for place in range(stages[0].sharpened.shape[-1])]
    return [
        Look.of_weights(
            torch.stack([getattr(each, name)[0] for each in stages], dim=1),  # (head, step, slot)
            queries=queries,
            keys=slots,
            path=f"{path}.{name}",
            kind="memory",
        )
        for name in Stages._fields
    ]
