"""python -m benchmarks.results: docs/results.md from the run records under results/.

python -m benchmarks.results --keep RUN adds a finished run's records first: its recipe, its
record and its evaluation, never its weights.
"""

from __future__ import annotations

import json
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
HEAD = """# Results

Made by `python -m benchmarks.results` from the records in `results/`: each row is one run of a
shipped recipe on 2 cores, scored on validation data by `regard evaluate`.

| recipe | score | expected | minutes | steps | signature |
|---|---|---|---|---|---|
"""


def keep(run: Path) -> None:
    """Copy what can be committed of a run, and evaluate it."""
    from regard.run import load

    loaded = load(run)
    place = RESULTS / loaded.recipe.name
    place.mkdir(parents=True, exist_ok=True)
    for name in ("recipe.toml", "record.jsonl"):
        shutil.copy(run / name, place / name)
    values = loaded.judge()
    (place / "evaluation.json").write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n")


def row(place: Path) -> str:
    recipe = tomllib.loads((place / "recipe.toml").read_text(encoding="utf-8"))
    values: dict[str, Any] = json.loads((place / "evaluation.json").read_text(encoding="utf-8"))
    record = [json.loads(line) for line in (place / "record.jsonl").read_text().splitlines()]
    (metric, expected), *_ = recipe["evaluation"]["expected"].items()
    # An evaluation tells its own seconds; steps tell those since the run began.
    told = [line for line in record if line["event"] == "train"] or record
    seconds = max(line.get("seconds", 0) for line in told)
    steps = max(line["step"] for line in record)
    cells = [
        f"`{place.name}`",
        f"{metric} {values[metric]:.4g}",
        f"{expected:g}",
        f"{seconds / 60:.1f}",
        f"{steps:,}",
        f"`{values['signature']}`".replace("|", "\\|"),
    ]
    return f"| {' | '.join(cells)} |\n"


def main() -> None:
    if sys.argv[1:2] == ["--keep"]:
        keep(Path(sys.argv[2]))
    places = sorted(path.parent for path in RESULTS.glob("*/evaluation.json"))
    page = HEAD + "".join(row(place) for place in places)
    (ROOT / "docs" / "results.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
