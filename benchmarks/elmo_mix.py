"""python -m benchmarks.elmo_mix [RUN]: what the layers of an ELMo are worth to a classifier.

Trains `sst2-elmo` on the frozen language model of RUN (runs/wikitext2-elmo if left out) three ways:
from the words' own vectors, from the top layer, and from a learned mix of all; each with three
seeds. Prints accuracies and the weights of the mix. What results/elmo_mix/table.json holds already
is not trained again; `--again` begins anew.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from itertools import product
from typing import Any

import regard
from benchmarks.sections import RESULTS, elmo_mix_line
from regard.atomic import write_atomically

TABLE = RESULTS / "elmo_mix" / "table.json"
ONE_LAYER = {"model.fresh": ["hidden", "output"]}  # there is no mix that could start anew
VARIANTS: dict[str, dict[str, Any]] = {
    "words' own vectors": {"model.layer": 0, **ONE_LAYER},
    "top layer": {"model.layer": 2, **ONE_LAYER},
    "learned mix": {},
}
SEEDS = (1, 2, 3)
Cell = dict[str, Any]


def measure(run: str, variant: str, seed: int) -> Cell:
    """Train one classifier, and judge it."""
    started = time.monotonic()
    settings = {"model.from": run, "seed": seed, **VARIANTS[variant]}
    with tempfile.TemporaryDirectory() as folder:
        classifier = regard.train("sst2-elmo", folder + "/run", settings)
        minutes = (time.monotonic() - started) / 60
        values = classifier.evaluate()
    mix = [values[f"mix_{layer}"] for layer in range(3)]
    return {
        "variant": variant,
        "seed": seed,
        "accuracy": values["accuracy"],
        "mix": mix,
        "minutes": round(minutes, 2),
        "signature": values["signature"],
    }


def main() -> None:
    run = next((word for word in sys.argv[1:] if not word.startswith("-")), "runs/wikitext2-elmo")
    kept = TABLE.exists() and "--again" not in sys.argv
    cells: list[Cell] = json.loads(TABLE.read_text(encoding="utf-8")) if kept else []
    for seed, variant in product(SEEDS, VARIANTS):
        if not any((cell["variant"], cell["seed"]) == (variant, seed) for cell in cells):
            cells.append(measure(run, variant, seed))
            TABLE.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(TABLE, (json.dumps(cells, indent=1) + "\n").encode())
            print(f"{variant}, seed {seed}: accuracy {cells[-1]['accuracy']:.4f}", flush=True)
    for variant in VARIANTS:
        print(
            elmo_mix_line(variant, [cell for cell in cells if cell["variant"] == variant]), end=""
        )


if __name__ == "__main__":
    main()
