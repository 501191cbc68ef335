"""What is to be made small: named parts, each normalised by a count of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from torch import Tensor, nn

from regard.data.batches import Batch

B = TypeVar("B", bound=Batch)


class Sum(NamedTuple):
    """A sum over a batch, and over how many things it goes."""

    value: Tensor
    items: int


class Outcome(NamedTuple):
    """What an objective found in one batch.

    A named tuple of dictionaries, since FSDP looks for tensors in those and not in dataclasses.
    """

    parts: dict[str, Tensor]  # what is made small: a sum each, to be divided by its count
    reports: dict[str, Sum] = {}  # noqa: RUF012  (never written to) what is only told
    state: Any = None  # to be carried to the next batch of a feed that continues
    predictions: Tensor | None = None  # the answer of each row, for metrics over all of them


class Objective(nn.Module, Generic[B]):
    """A model with its loss: loss = Σ weight · Σ part / count, over the parts

    This is what is trained, and what DDP and FSDP wrap, for they only listen to `forward`.

    Gradients are added up batch by batch while the counts of all batches of a step, on all
    processes, are known only together: so `counts` tells them ahead, from the batch alone.
    Parameters and buffers of an objective (a value head, a moving baseline) are trained, saved and
    resumed like the model's. Where an attention looked is seen with `regard.watch(self.model)`
    around the call of the model: its weights have gradients, a hard one leaves its sample.
    """

    weights: ClassVar[Mapping[str, float]] = {"loss": 1.0}
    """How much each part matters. The name "loss" is for an objective of one part."""

    model: Any

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model
        # Else a model that is in use would be put into training by whoever scores it.
        self.training = model.training

    def counts(self, batch: B) -> dict[str, int]:
        """How many things each part of this batch is summed over."""
        return {"loss": batch.tokens}

    def forward(self, batch: B, state: Any = None) -> Outcome:
        """The parts of a batch, each a sum; `state` is what the batch before left."""
        raise NotImplementedError

    def loss(self, means: Mapping[str, float]) -> float:
        """The parts, each divided by its count, as one number."""
        return sum(weight * means[name] for name, weight in self.weights.items())

    def metrics(self, means: Mapping[str, float]) -> dict[str, float]:
        """What follows from the means of parts and reports, by the names of `regard.metrics`."""
        return {**means, "loss": self.loss(means)}

    def finish_step(self, means: Mapping[str, float]) -> None:
        """Update what is no parameter, a moving baseline say, after a step of the optimizer.

        `means` are those of parts and reports over all batches of the step and all processes, so
        that the processes stay alike.
        """

    def own_state(self) -> dict[str, Tensor]:
        """Parameters and buffers that are the objective's and not the model's."""
        return {k: v for k, v in self.state_dict().items() if not k.startswith("model.")}


class Totals:
    """Sums and counts of parts and reports, added up over batches."""

    def __init__(self, sums: dict[str, float], counts: dict[str, float]):
        self.sums, self.counts = sums, counts

    @classmethod
    def zero(cls) -> Totals:
        return cls({}, {})

    def add(self, outcome: Outcome, counts: Mapping[str, int]) -> None:
        """Count a batch in."""
        for name, part in outcome.parts.items():
            self._add(name, part.item(), counts[name])
        for name, report in outcome.reports.items():
            self._add(name, report.value.item(), report.items)

    def merge(self, others: Totals) -> None:
        for name, value in others.sums.items():
            self._add(name, value, others.counts[name])

    def means(self) -> dict[str, float]:
        """Each sum over its count; 0 where there was nothing to count."""
        return {name: value / max(self.counts[name], 1) for name, value in self.sums.items()}

    def _add(self, name: str, value: float, count: float) -> None:
        self.sums[name] = self.sums.get(name, 0.0) + value
        self.counts[name] = self.counts.get(name, 0) + count


def add_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, float]:
    """The counts of several batches together."""
    total: dict[str, float] = {}
    for each in counts:
        for name, count in each.items():
            total[name] = total.get(name, 0) + count
    return total
