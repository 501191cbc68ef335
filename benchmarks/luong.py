"""python -m benchmarks.luong: Luong's table on number names, every score × scope × input feeding.

Trains `numbers-luong` once for each cell, on the same data and with as many steps, and measures how
many names come out right (test numbers) and how well the attention finds the word that belongs
(alignment error rate against the gold of the morphemes). Cells that results/luong/table.json holds
already are not trained again; `--again` begins anew.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from itertools import product
from typing import Any

import regard
from benchmarks.sections import RESULTS, luong_line
from regard.atomic import write_atomically
from regard.metrics import aer
from regard.models.luong import SCOPES, SCORES
from regard.running.aligning import align

TABLE = RESULTS / "luong" / "table.json"
ALIGNED_PAIRS = 300
HEAD = """| score | scope | input feeding | exact match | AER | minutes |
|---|---|---|---|---|---|"""
Cell = dict[str, Any]


def settings_of(score: str, scope: str, feeding: bool) -> dict[str, Any]:
    settings = {"model.score": score, "model.scope": scope, "model.input_feeding": feeding}
    # Without input feeding a place that was looked at reaches no later word.
    return {**settings, "task.discount": 1.0 if feeding else 0.0}


def measure(score: str, scope: str, feeding: bool) -> Cell:
    """Train one cell, translate, align."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        run = regard.train("numbers-luong", folder + "/run", settings_of(score, scope, feeding))
        minutes = (time.monotonic() - started) / 60
        values = run.evaluate("test")
        pairs, gold = run.task.gold_pairs("test")
        assert gold is not None
        links = align(run, pairs[:ALIGNED_PAIRS])
    return {
        "score": score,
        "scope": scope,
        "input_feeding": feeding,
        "exact_match": values["exact_match"],
        "loss": values["loss"],
        "aer": aer(links, gold[:ALIGNED_PAIRS]).value,
        "minutes": round(minutes, 2),
        "seed": run.recipe.seed,
        "signature": values["signature"],
    }


def key(cell: Cell) -> tuple[str, str, bool]:
    return cell["score"], cell["scope"], cell["input_feeding"]


def main() -> None:
    kept = TABLE.exists() and "--again" not in sys.argv
    cells: list[Cell] = json.loads(TABLE.read_text(encoding="utf-8")) if kept else []
    print(HEAD)
    for place in product(SCORES, SCOPES, (True, False)):
        found = next((cell for cell in cells if key(cell) == place), None)
        if found is None:
            found = measure(*place)
            cells.append(found)
            TABLE.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(TABLE, (json.dumps(cells, indent=1) + "\n").encode())
        print(luong_line(found), end="", flush=True)


if __name__ == "__main__":
    main()
