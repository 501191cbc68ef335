"""Tables of numbers: rows with named columns, the last of which is wanted.

A column of numbers is standardised, with mean and deviation of the training rows; a column of names
becomes an input for each name, 1 where it stands and 0 elsewhere. Two names share one input.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from regard.data.batches import Rows
from regard.data.corpora import read_rows
from regard.data.feeds import random_stream
from regard.naming import suggest

Cell = str | float


@dataclass(frozen=True)
class Table:
    """Rows of cells under their columns, each with where it comes from, for messages."""

    columns: tuple[str, ...]  # the inputs, then what is wanted
    rows: tuple[tuple[Cell, ...], ...]
    places: tuple[str, ...]  # "restaurants.csv, line 7"

    def column(self, name: str) -> list[Cell]:
        at = self.columns.index(name)
        return [row[at] for row in self.rows]

    def pick(self, rows: slice) -> Table:
        return Table(self.columns, self.rows[rows], self.places[rows])


@dataclass(frozen=True)
class Column:
    """How the cells of a column become numbers, learned from the training rows alone."""

    name: str
    mean: float = 0.0
    scale: float = 1.0
    names: tuple[str, ...] = ()  # of a column of names, sorted; () for numbers

    @property
    def inputs(self) -> tuple[str, ...]:
        """What each of its inputs is called."""
        if not self.names:
            return (self.name,)
        told = self.names[1:] if len(self.names) == 2 else self.names
        return tuple(f"{self.name} {name}" for name in told)

    def encode(self, cell: Cell, where: str) -> list[float]:
        """A cell as a number for each of its inputs."""
        if not self.names:
            return [(as_number(cell, self.name, where) - self.mean) / self.scale]
        number = self.number_of(cell, where)
        if len(self.names) == 2:
            return [float(number)]
        return [float(place == number) for place in range(len(self.names))]

    def number_of(self, cell: Cell, where: str) -> int:
        """The place of a name among those that are known."""
        if str(cell) not in self.names:
            hint = suggest(str(cell), self.names)
            raise ValueError(f"{where}: {self.name} ({str(cell)[:40]!r}) is not known; {hint}")
        return self.names.index(str(cell))


def read_table(path: str | Path, format: str, columns: Sequence[str | int] | None) -> Table:
    """A csv or tsv file whose first row names its columns; all of them if `columns` is left out."""
    rows = read_rows(path, format)
    number, header = next(rows, (1, []))
    for column in columns or ():
        if column not in header:
            named = ", ".join(header)
            raise ValueError(f"{path}, line {number}: no column {column!r} among {named}")
    chosen = tuple(str(column) for column in columns or header)
    if len(chosen) < 2:
        raise ValueError(f"{path}: columns ({', '.join(chosen)}) must be two or more: one is asked")
    if len(set(header)) < len(header):
        raise ValueError(f"{path}, line {number}: two columns have one name: {', '.join(header)}")
    at = [header.index(column) for column in chosen]
    found, places = [], []
    for number, row in rows:
        where = f"{path}, line {number}"
        if len(row) != len(header):
            raise ValueError(f"{where}: {len(row)} cells under {len(header)} columns")
        found.append(tuple(row[place] for place in at))
        places.append(where)
    if not found:
        raise ValueError(f"{path} has no rows beside the names of its columns")
    return Table(chosen, tuple(found), tuple(places))


def make_table(columns: Sequence[str], rows: Iterable[Sequence[Cell]], what: str) -> Table:
    """A table from rows in memory; `what` one of them is, for messages."""
    found = tuple(tuple(row) for row in rows)
    for number, row in enumerate(found, start=1):
        if len(row) != len(columns):
            raise ValueError(f"{what} {number}: {len(row)} cells under {len(columns)} columns")
    places = tuple(f"{what} {number}" for number in range(1, len(found) + 1))
    return Table(tuple(columns), found, places)


def learn_column(table: Table, name: str, named: bool) -> Column:
    """Mean and deviation of a column's numbers, or the names in it if it is `named`."""
    cells = table.column(name)
    if named:
        names = sorted({str(cell) for cell in cells})
        if len(names) < 2:
            raise ValueError(f"column {name!r} is {names[0]!r} in every row: it tells nothing")
        return Column(name, names=tuple(names))
    numbers = [as_number(c, name, where) for c, where in zip(cells, table.places, strict=True)]
    mean = math.fsum(numbers) / len(numbers)
    variance = math.fsum((number - mean) ** 2 for number in numbers) / len(numbers)
    # A column that never changes is 0 in training; elsewhere it is told in its own units.
    return Column(name, mean, math.sqrt(variance) or 1.0)


def as_number(cell: Cell, name: str, where: str) -> float:
    """A cell as a number; infinities and NaN are none."""
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{where}: {name} ({str(cell)[:40]!r}) must be a number")
    return number


def encode_inputs(table: Table, columns: Sequence[Column]) -> Tensor:  # (row, input)
    """The inputs of every row."""
    places = [table.columns.index(column.name) for column in columns]
    rows = [
        [
            number
            for column, place in zip(columns, places, strict=True)
            for number in column.encode(row[place], where)
        ]
        for row, where in zip(table.rows, table.places, strict=True)
    ]
    return torch.tensor(rows)


class RowFeed:
    """Rows of a table, `batch` at once; shuffled every epoch if there is a seed."""

    continues = False

    def __init__(self, inputs: Tensor, targets: Tensor, batch: int, seed: int | None = None):
        self.inputs, self.targets, self.batch_size, self.seed = inputs, targets, batch, seed

    @property
    def summary(self) -> str:
        return f"{len(self.inputs):,} rows of {self.inputs.shape[1]} inputs"

    def batches(self, epoch: int) -> int:
        return -(-len(self.inputs) // self.batch_size)

    def batch(self, epoch: int, index: int) -> Rows:
        order = torch.arange(len(self.inputs))
        if self.seed is not None:
            order = torch.randperm(len(order), generator=random_stream(self.seed, epoch))
        chosen = order[index * self.batch_size : (index + 1) * self.batch_size]
        return Rows(self.inputs[chosen], self.targets[chosen])
