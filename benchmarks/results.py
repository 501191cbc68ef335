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

from regard.models.ngram import Ngram
from regard.running import load

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
HEAD = """# Results

Made by `python -m benchmarks.results` from the records in `results/`: each row is one run of a
shipped recipe on 2 cores, scored on validation data by `regard evaluate`.

| recipe | score | expected | minutes | steps | signature |
|---|---|---|---|---|---|
"""
TESTS = """
## On test data

What chose the weights was the validation data above; these texts were scored once, at the end.

| recipe | parameters | score | signature |
|---|---|---|---|
"""
LANGUAGE_MODELS = """
## Language models on the Penn Treebank

Perplexity on the validation text: 73,760 words, sentence ends among them, each predicted. The
parameters of an n-gram model are the n-grams it has counted. The last column is the share of
attention that falls on the last five words a position may see.

| recipe | model | parameters | perplexity | on the last five |
|---|---|---|---|---|
"""


def keep(run: Path) -> None:
    """Copy what can be committed of a run, and evaluate it."""
    loaded = load(run)
    place = RESULTS / loaded.recipe.name
    place.mkdir(parents=True, exist_ok=True)
    for name in ("recipe.toml", "record.jsonl"):
        shutil.copy(run / name, place / name)
    values = {**loaded.evaluate(), "parameters": parameters(loaded.model)}
    write(place / "evaluation.json", values)
    try:
        tested = loaded.evaluate("test")
    except ValueError as reason:  # there are none, or not on this machine
        print(f"{loaded.recipe.name}: not scored on test data: {reason}")
    else:
        write(place / "test.json", {**tested, "parameters": values["parameters"]})


def write(path: Path, values: dict[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def parameters(model: Any) -> int:
    """The numbers a model has learned; of an n-gram model, the n-grams."""
    if isinstance(model, Ngram):
        return sum(len(level.keys) - 1 for level in model.levels)
    return sum(weight.numel() for weight in model.parameters())


def read(place: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The recipe and the evaluation."""
    recipe = tomllib.loads((place / "recipe.toml").read_text(encoding="utf-8"))
    return recipe, json.loads((place / "evaluation.json").read_text(encoding="utf-8"))


def row(place: Path) -> str:
    recipe, values = read(place)
    record = [json.loads(line) for line in (place / "record.jsonl").read_text().splitlines()]
    (metric, expected), *_ = recipe["evaluation"]["expected"].items()
    # An evaluation tells its own seconds; steps tell those since the run began.
    told = [line for line in record if line["event"] == "train"] or record
    seconds = max(line.get("seconds", 0) for line in told)
    steps = max(line["step"] for line in record)
    threads = record[-1].get("threads", 2)
    cells = [
        f"`{place.name}`",
        f"{metric} {values[metric]:.4g}",
        f"{expected:g}",
        f"{seconds / 60:.1f}" + (" on one core" if threads == 1 else ""),
        f"{steps:,}",
        f"`{values['signature']}`".replace("|", "\\|"),
    ]
    return f"| {' | '.join(cells)} |\n"


def tests(places: list[Path]) -> str:
    """The runs that were scored on test data."""
    rows = []
    for place in places:
        if (place / "test.json").exists():
            recipe, _ = read(place)
            values = json.loads((place / "test.json").read_text(encoding="utf-8"))
            metric = next(iter(recipe["evaluation"]["expected"]))
            signature = f"`{values['signature']}`".replace("|", "\\|")
            score = f"{metric} {values[metric]:.4g}"
            rows.append(f"| `{place.name}` | {values['parameters']:,} | {score} | {signature} |\n")
    return TESTS + "".join(rows) if rows else ""


def language_models(places: list[Path]) -> str:
    """Every language model of the Penn Treebank, the best one last."""
    found = [(place.name, *read(place)) for place in places if place.name.startswith("ptb-")]
    rows = []
    for name, recipe, values in sorted(found, key=lambda each: -float(each[2]["perplexity"])):
        model = recipe["model"]
        kind = f"{model['name']} ({model['kind']})" if "kind" in model else model["name"]
        near = f"{values['on_last_five']:.0%}" if "on_last_five" in values else ""
        size = f"{values['parameters']:,}"
        rows.append(f"| `{name}` | {kind} | {size} | {values['perplexity']:.1f} | {near} |\n")
    return LANGUAGE_MODELS + "".join(rows)


def main() -> None:
    if sys.argv[1:2] == ["--keep"]:
        for run in sys.argv[2:]:
            keep(Path(run))
    places = sorted(path.parent for path in RESULTS.glob("*/evaluation.json"))
    page = HEAD + "".join(row(place) for place in places) + tests(places)
    page += language_models(places)
    (ROOT / "docs" / "results.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
