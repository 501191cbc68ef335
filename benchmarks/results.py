"""python -m benchmarks.results: docs/results.md from the run records under results/.

python -m benchmarks.results --keep RUN … adds the records of finished runs first: recipe, record
and evaluation, on test data too where the recipe has some and they are there; never weights.
"""

from __future__ import annotations

import json
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

from benchmarks import sections
from benchmarks.sections import RESULTS, read
from regard.models.ngram import Ngram
from regard.running import Run, load
from regard.training.shipped import find_recipe

PAGE = RESULTS.parent / "docs" / "results.md"
HEAD = """# Results

Made by `python -m benchmarks.results` from the records in `results/`: each row is one run of a
shipped recipe on 2 cores, scored by `regard evaluate`: on validation data, and on the test data of
the recipe where they are at hand.

| recipe | score | on test | expected | minutes | steps | signature |
|---|---|---|---|---|---|---|
"""


def keep(run: Path) -> None:
    """Copy what can be committed of a run, and evaluate it."""
    loaded = load(run)
    seed = loaded.recipe.seed  # shipped recipes have 1
    place = RESULTS / (loaded.recipe.name if seed == 1 else f"{loaded.recipe.name}-seed{seed}")
    place.mkdir(parents=True, exist_ok=True)
    for name in ("recipe.toml", "record.jsonl"):
        shutil.copy(run / name, place / name)
    values = {**loaded.evaluate(), "parameters": parameters(loaded.model)}
    test = evaluate_test(loaded)
    if test is not None:
        values["test"] = test
    (place / "evaluation.json").write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n")


def evaluate_test(run: Run) -> dict[str, Any] | None:
    """The metrics on the test split; None where its files are not at hand."""
    try:
        return run.evaluate("test")
    except ValueError:  # no data.test, or a split that is held out
        return None


def parameters(model: Any) -> int:
    """The numbers a model has learned; of an n-gram model, the n-grams."""
    if isinstance(model, Ngram):
        return sum(len(level.keys) - 1 for level in model.levels)
    return sum(weight.numel() for weight in model.parameters())


def row(place: Path) -> str:
    recipe, values = read(place)
    record = [json.loads(line) for line in (place / "record.jsonl").read_text().splitlines()]
    (metric, expected), *_ = expected_scores(recipe).items()
    steps = max(line["step"] for line in record)
    cells = [
        f"`{place.name}`",
        f"{metric} {values[metric]:.4g}",
        f"{values['test'][metric]:.4g}" if "test" in values else "",
        f"{expected:g}",
        sections.minutes(place),
        f"{steps:,}",
        f"`{values['signature']}`".replace("|", "\\|"),
    ]
    return f"| {' | '.join(cells)} |\n"


def expected_scores(recipe: dict[str, Any]) -> dict[str, float]:
    """What the shipped recipe promises now; the one beside a run has the promise of its day."""
    shipped = tomllib.loads(find_recipe(recipe["name"]).read_text(encoding="utf-8"))
    scores: dict[str, float] = shipped["evaluation"]["expected"]
    return scores


def write_page() -> str:
    """docs/results.md, and its text."""
    places = sorted(path.parent for path in RESULTS.glob("*/evaluation.json"))
    page = HEAD + "".join(row(place) for place in places)
    page += sections.language_models(places) + sections.luong()
    page += sections.translators(places) + sections.lengths()
    page += sections.elmo_mix() + sections.berts(places) + sections.backpacks(places)
    page += sections.zoo(places)
    PAGE.write_text(page, encoding="utf-8")
    return page


def main() -> None:
    if sys.argv[1:2] == ["--keep"]:
        for run in sys.argv[2:]:
            keep(Path(run))
    print(write_page())


if __name__ == "__main__":
    main()
