"""A number or a label for each row of a table."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import Look
from regard.data.batches import Rows
from regard.data.config import Files
from regard.data.feeds import Feed
from regard.data.files import find_one
from regard.data.restaurants import Restaurant, make_restaurants
from regard.data.tables import (
    Cell,
    Column,
    RowFeed,
    Table,
    encode_inputs,
    learn_column,
    make_table,
    read_table,
)
from regard.naming import suggest
from regard.tasks.answers import Candidate
from regard.tasks.objective import Objective, Outcome, Sum
from regard.tasks.resources import Resources
from regard.tasks.task import Check, Task
from regard.text import Tokenizer

GENERATORS: dict[str, tuple[tuple[str, ...], Callable[[int, int, str], Sequence[Sequence[Cell]]]]]
GENERATORS = {"restaurants": (Restaurant._fields, make_restaurants)}
"""Tables that are made: their columns, and rows from a count, a seed and a split."""


@dataclass(frozen=True, kw_only=True)
class TableConfig:
    """The [task] section: what kind of columns there are, and which belong together."""

    answer: Literal["number", "label"] = "number"  # what the last column holds
    names: list[str] = field(default_factory=list)  # columns that hold names and not numbers
    subproblems: list[list[str]] = field(default_factory=list)  # for features that are hand-made


class TablePrediction(Task[Table]):
    """ŷ = f(x₁ … x_n), a number or a label from the other columns of its row

    Reads no text, so that a run of it has no tokenizer; `columns.json` in the run folder says how
    cells become numbers.
    """

    config = TableConfig
    feeds = ("rows",)
    formats = ("text", "csv", "tsv")  # "text", the default of a recipe, for tables that are made
    size_names = ("inputs", "outputs")

    def __init__(self, recipe: Any):
        super().__init__(recipe)
        numbers = self.settings.answer == "number"
        self.metrics = ("r2", "mse", "loss") if numbers else ("accuracy", "loss")
        generator = recipe.data.generator
        if generator is not None and generator not in GENERATORS:
            hint = suggest(generator, GENERATORS)
            raise ValueError(f"data.generator ({generator!r}) makes no table; {hint}")

    # From data to batches

    def read(self, split: str) -> Table | None:
        data = self.recipe.data
        if data.generator is not None:
            columns, make = GENERATORS[data.generator]
            counts = {"train": data.examples, "valid": data.valid_examples}
            rows = make(counts.get(split, data.test_examples), self.recipe.seed, split)
            return make_table(columns, rows, "row")
        if data.train is None:
            raise ValueError("data.train is missing: a csv or tsv file, or a data.generator")
        if split != "test" and data.valid is None and data.valid_share:
            table = self._read(data.train)
            cut = int(len(table.rows) * (1 - data.valid_share))
            return table.pick(slice(cut, None) if split == "valid" else slice(cut))
        files: Files = getattr(data, split)
        return None if files is None else self._read(files)

    def read_files(self, files: Sequence[str]) -> Table:
        return self._read(list(files))

    def _read(self, files: Files) -> Table:
        data = self.recipe.data
        return read_table(find_one(files, data, "a table"), data.format, data.columns)

    def examples(self, examples: Iterable[Any]) -> Table:
        """Rows of cells, in the order of the columns."""
        data = self.recipe.data
        columns = GENERATORS[data.generator][0] if data.generator else data.columns
        if columns is None:
            raise ValueError("data.columns is missing: what are the cells of a row?")
        return make_table([str(column) for column in columns], examples, "example")

    def prepare(self, train: Table, tokenizer: Tokenizer | None) -> Resources:
        named = [
            *self.settings.names,
            *(name for part in self.settings.subproblems for name in part),
        ]
        for name in named:
            if name not in train.columns[:-1]:
                hint = suggest(name, train.columns[:-1])
                raise ValueError(f"task: there is no column {name!r} to read; {hint}")
        *inputs, target = train.columns
        columns = [learn_column(train, name, name in self.settings.names) for name in inputs]
        columns.append(learn_column(train, target, self.settings.answer == "label"))
        return Resources(labels=columns[-1].names, columns=tuple(columns))

    def sizes(self, resources: Resources) -> dict[str, int]:
        inputs, target = split_columns(resources)
        return {"inputs": len(name_inputs(inputs)), "outputs": max(1, len(target.names))}

    def initialise(self, model: nn.Module, resources: Resources) -> None:
        """Tell the model which of its inputs make up each subproblem."""
        inputs, _ = split_columns(resources)
        owners = [column.name for column in inputs for _ in column.inputs]
        parts = [
            [place for place, owner in enumerate(owners) if owner in part]
            for part in self.settings.subproblems
        ]
        divide: Any = getattr(model, "divide", None)
        if divide is not None:
            divide(parts)

    def training_feed(self, corpus: Table, resources: Resources) -> Feed[Rows]:
        return self._feed(corpus, resources, self.recipe.training.batch, self.recipe.seed)

    def scoring_feed(self, corpus: Table, resources: Resources) -> Feed[Rows]:
        return self._feed(corpus, resources, self.recipe.evaluation.batch, None)

    def _feed(self, table: Table, resources: Resources, batch: int, seed: int | None) -> RowFeed:
        inputs, target = split_columns(resources)
        for column in resources.columns:
            if column.name not in table.columns:
                raise ValueError(f"the table has no column {column.name!r}, which the run reads")
        cells = zip(table.column(target.name), table.places, strict=True)
        if target.names:
            wanted = torch.tensor([target.number_of(cell, where) for cell, where in cells])
        else:
            wanted = torch.tensor([target.encode(cell, where)[0] for cell, where in cells])
        return RowFeed(encode_inputs(table, inputs), wanted, batch, seed)

    # From batches to numbers

    def objective(self, model: nn.Module) -> Objective[Rows]:
        return SquaredError(model) if self.settings.answer == "number" else RowLikelihood(model)

    def evaluate(
        self,
        objective: Objective[Any],
        feed: Feed[Any],
        resources: Resources,
        names: Sequence[str],
        wrapped: Any = None,
    ) -> dict[str, Any]:
        values = super().evaluate(objective, feed, resources, names, wrapped)
        if self.settings.answer == "label":
            return values
        scale = resources.columns[-1].scale
        return {"r2": values.pop("r2"), "mse": values["loss"] * scale**2, **values}

    # A run in use

    def verbs(self) -> dict[str, Any]:
        return {"predict": Predict}

    def look(
        self, model: nn.Module, resources: Resources, text: str, target: str | None = None
    ) -> list[Look]:
        """What the hidden units see, what they make of one row, and how the answer reads them.

        `text` is a row as a file has it, without what is asked: "12,45,yes,10003,60,140".
        """
        if target is not None:
            raise ValueError(f"target ({target!r}): a table's row has one answer")
        inputs, asked = split_columns(resources)
        row = encode_row(text, inputs)  # (1, input)
        return layer_looks(model, row, name_inputs(inputs), list(asked.names) or [asked.name])

    def checks(self, model: Any, resources: Resources, seed: int) -> Iterator[Check]:
        inputs, _ = split_columns(resources)
        generator = torch.Generator().manual_seed(seed)
        rows = torch.randn(3, len(name_inputs(inputs)), generator=generator)
        batch = Rows(rows, torch.zeros(3))
        alone = [model(batch.pick(torch.tensor([row]))) for row in range(3)]
        yield Check("a batch of 3 = 3 batches of 1", model(batch), torch.cat(alone))


class SquaredError(Objective[Rows]):
    """loss = Σ (ŷ − y)² / rows, in units of the training rows' variance; r2 = 1 − loss / var y"""

    def counts(self, batch: Rows) -> dict[str, int]:
        return {"loss": int(batch.loss_mask.sum())}

    def forward(self, batch: Rows, state: Any = None) -> Outcome:
        counted = batch.loss_mask
        wanted = batch.targets[counted]
        loss = (self.model(batch).squeeze(-1)[counted] - wanted).square().sum()
        count = len(wanted)
        reports = {"mean": Sum(wanted.sum(), count), "square": Sum(wanted.square().sum(), count)}
        return Outcome({"loss": loss}, reports)

    def metrics(self, means: Mapping[str, float]) -> dict[str, float]:
        variance = means["square"] - means["mean"] ** 2
        # Where all targets are one number there is nothing to explain.
        return {"r2": 1 - means["loss"] / variance if variance > 0 else 0.0, "loss": means["loss"]}


class RowLikelihood(Objective[Rows]):
    """loss = −Σ log p(label | row) / rows, and the share of labels that are the likeliest"""

    def counts(self, batch: Rows) -> dict[str, int]:
        return {"loss": int(batch.loss_mask.sum())}

    def forward(self, batch: Rows, state: Any = None) -> Outcome:
        counted = batch.loss_mask
        logits, wanted = self.model(batch)[counted], batch.targets[counted]
        loss = F.cross_entropy(logits, wanted, reduction="sum")
        right = (logits.argmax(dim=-1) == wanted).sum()
        return Outcome({"loss": loss}, {"accuracy": Sum(right, len(wanted))})


class Predict:
    """The number or the label of a row, written as in a csv file, without what is asked."""

    def __init__(self, task: TablePrediction, model: Any, resources: Resources):
        self.model, (self.inputs, self.target) = model, split_columns(resources)

    def encode(self, text: str) -> Tensor:
        return encode_row(text, self.inputs)

    @torch.no_grad()
    def answer(self, encoded: list[Tensor], numbers: list[int]) -> list[list[Candidate]]:
        """A label has its probability for a score, a number has none."""
        rows = torch.cat(encoded)  # (batch, input)
        answers = self.model(Rows(rows, torch.zeros(len(rows))))
        if not self.target.names:
            values = answers.squeeze(-1) * self.target.scale + self.target.mean
            return [[Candidate(f"{value:.6g}", 0.0)] for value in values.tolist()]
        odds, best = answers.softmax(dim=-1).max(dim=-1)
        pairs = zip(odds.tolist(), best.tolist(), strict=True)
        return [[Candidate(self.target.names[number], share)] for share, number in pairs]


def split_columns(resources: Resources) -> tuple[tuple[Column, ...], Column]:
    """The columns that are read, and the one that is asked for."""
    return resources.columns[:-1], resources.columns[-1]


def name_inputs(columns: Sequence[Column]) -> list[str]:
    """What each input of a model is called."""
    return [name for column in columns for name in column.inputs]


def encode_row(text: str, columns: Sequence[Column]) -> Tensor:  # (1, input)
    """One row as a csv file has it."""
    cells = [cell.strip() for cell in next(csv.reader([text]), [])]
    table = make_table([column.name for column in columns], [cells], "row")
    return encode_inputs(table, columns)


@torch.no_grad()
def layer_looks(model: Any, row: Tensor, inputs: list[str], outputs: list[str]) -> list[Look]:
    """For each layer its weights, and each weight times what it reads of this row."""
    looks, values = [], [row, *model.hidden(row)]
    layers = [*model.layers, model.output]
    keys = inputs
    for number, (layer, read) in enumerate(zip(layers, values, strict=True)):
        last = layer is model.output
        queries = outputs if last else [f"unit {unit}" for unit in range(len(layer.weight))]
        looks.append(
            Look.of_weights(
                torch.stack([layer.weight, layer.weight * read]),
                path="output" if last else f"layers.{number}",
                kind="layer",
                heads=("weights", "weights × this row"),
                queries=queries,
                keys=keys,
            )
        )
        keys = queries
    return looks
