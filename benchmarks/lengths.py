"""python -m benchmarks.lengths RUN …: BLEU of translators by the length of the sentence.

Translates the test split of each run's recipe (its validation split where the test split is not
at hand), puts sentences of like length together, and writes results/lengths/table.json,
docs/results.md and docs/pictures/bleu-by-length.svg, after figure 2 of Bahdanau et al. (2015).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks import results, sections
from regard.atomic import write_atomically
from regard.looking import Curves
from regard.metrics import bleu
from regard.running import Run, load

TABLE = sections.RESULTS / "lengths" / "table.json"
PICTURE = results.PAGE.parent / "pictures" / "bleu-by-length.svg"
BINS = ((1, 8), (9, 10), (11, 12), (13, 15), (16, 19), (20, 99))
"""Words of the source, about as many sentences of Multi30k in each but the last."""


def measure(run: Run) -> dict[str, Any]:
    """The BLEU of each bin, and of all."""
    pairs = read_pairs(run)
    sources, references = zip(*pairs, strict=True)
    said = [answer.output for answer in run.translate(list(sources))]
    lengths = [len(source.split()) for source in sources]

    def score(places: Sequence[int]) -> float:
        tokenize = run.recipe.task.get("bleu_tokenize", "13a")
        chosen = [[texts[i] for i in places] for texts in (said, references)]
        return bleu(*chosen, tokenize=tokenize).value

    groups = [[i for i, n in enumerate(lengths) if low <= n <= high] for low, high in BINS]
    return {
        "recipe": run.recipe.name,
        "model": run.recipe.model["name"],
        "parameters": results.parameters(run.model),
        "all": score(range(len(said))),
        "bleu": [score(places) for places in groups],
        "sentences": [len(places) for places in groups],
        "words": [round(mean(lengths[i] for i in places), 1) for places in groups],
    }


def read_pairs(run: Run) -> list[tuple[str, str]]:
    try:
        pairs = run.task.read("test")
    except ValueError:  # a split that is held out
        pairs = None
    return list(pairs or run.task.read("valid"))


def draw(rows: list[dict[str, Any]]) -> Curves:
    return Curves(
        {row["recipe"]: row["bleu"] for row in rows},
        "Translation by sentence length",
        "words of the source sentence",
        "BLEU",
        x=rows[0]["words"],
    )


def main() -> None:
    rows = [measure(load(Path(run))) for run in sys.argv[1:]]
    if not rows:
        raise SystemExit("usage: python -m benchmarks.lengths RUN …")
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(TABLE, (json.dumps(rows, indent=1) + "\n").encode())
    draw(rows).save(PICTURE)
    results.write_page()
    print(sections.lengths())


if __name__ == "__main__":
    main()
