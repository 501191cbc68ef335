"""Makes the pictures of learned features: python docs/pictures/features.py

The popularity of made-up restaurants follows from their food, their street and their noise, which
no network is told. One is trained on the plain columns. Of each hidden unit one picture shows its
weights, the other how its answer goes along with the three over restaurants it has not seen.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

import regard
from regard.attention import Look
from regard.data.restaurants import SUBPROBLEMS, Restaurant, hidden_features
from regard.looking import Looks
from regard.running import Run
from regard.tasks.table import name_inputs, split_columns

HERE = Path(__file__).parent


def correlate(run: Run) -> Tensor:
    """(unit, hidden feature), from −1 to 1, over the test restaurants."""
    table = run.task.read("test")
    rows = [Restaurant(*row) for row in table.rows]
    truth = torch.tensor([list(hidden_features(row).values()) for row in rows])
    units = run.model.hidden(run.task.scoring_feed(table, run.resources).inputs)[0]
    together = torch.cat([units, truth], dim=1).T  # (unit + feature, row)
    return torch.corrcoef(together)[: units.shape[1], units.shape[1] :]


@torch.no_grad()
def draw(run: Run, path: Path) -> None:
    inputs = name_inputs(split_columns(run.resources)[0])
    first, output = run.model.layers[0], run.model.output
    # Strongest first, each turned so that more of it means more popular: the sign of a tanh unit
    # says nothing by itself.
    reading = output.weight[0]
    order = reading.abs().argsort(descending=True)
    sign = reading.sign()[:, None]
    names = [f"unit {unit} × {abs(reading[unit]):.2f}" for unit in order.tolist()]
    weights = Look.of_weights(
        (first.weight * sign)[order], path="weights", kind="layer", queries=names, keys=inputs
    )
    found = Look.of_weights(
        (correlate(run) * sign)[order],
        path="correlation with what nobody told it",
        kind="layer",
        queries=names,
        keys=list(SUBPROBLEMS),
    )
    for part, look in (("weights", weights), ("found", found)):
        Looks([look]).save(path.with_stem(f"{path.stem}-{part}"))


def main() -> None:
    with TemporaryDirectory() as folder:
        run = regard.train("restaurants-mlp", Path(folder) / "run")
        print(run.evaluate("test")["signature"])
        draw(run, HERE / "restaurants-mlp.svg")


if __name__ == "__main__":
    main()
