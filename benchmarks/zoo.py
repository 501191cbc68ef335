"""python -m benchmarks.zoo NAME [--run RUN]: a model of the zoo, made anew.

Trains the recipe NAME in a folder of the system's own for such things, or takes the finished run
RUN; stores its weights in half precision with all a run folder needs under zoo/regard_zoo/NAME,
evaluates what was stored, and renews results/NAME and docs/results.md.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks import results
from regard.atomic import write_atomically
from regard.checkpoints.folders import new_folder, write_json, write_manifest, write_tensors
from regard.checkpoints.reading import Folder
from regard.checkpoints.weights import drop_tied
from regard.checkpoints.zoo import CHECKOUT
from regard.cli.progress import Progress
from regard.running import load, train
from regard.running.zoo import EVALUATION
from regard.training.finished import WEIGHTS
from regard.training.recipe import write_recipe
from regard.training.record import read_record
from regard.training.teaching import ANSWERS

MAX_ENTRY_BYTES = 10_000_000
MAX_ZOO_BYTES = 60_000_000
ROUNDING = 2.0**-10
"""The relative error of a weight matrix in half precision, if all its numbers are in range."""


def store(run: Path, zoo: Path = CHECKOUT) -> Path:
    """A finished run as a run folder of the zoo, under the name of its recipe."""
    loaded, files = load(run), Folder(run)
    place = zoo / loaded.recipe.name
    weights = files.tensors(WEIGHTS)
    if isinstance(loaded.model, nn.Module):  # counts of n-grams are not to be rounded
        weights = {name: halve(w) for name, w in drop_tied(weights, loaded.model).items()}
    with new_folder(place) as built:
        for name in set(files.entries) - {WEIGHTS, EVALUATION, ANSWERS}:
            write_atomically(built / name, files.read(name))
        write_atomically(built / "record.jsonl", shorten_record(run / "record.jsonl"))
        write_tensors(built / WEIGHTS, weights)
        (built / WEIGHTS).chmod(0o644)  # safetensors writes for its owner alone; wheels keep that
        write_manifest(built)
        check_sizes(folder_bytes(built), place, zoo)
        values = load(built).evaluate()
        write_json(built / EVALUATION, {k: v for k, v in values.items() if k != "seconds"})
        # Where its data lay on the machine it was trained on has no meaning elsewhere.
        recipe = replace(loaded.recipe, data=replace(loaded.recipe.data, root=None))
        write_atomically(built / "recipe.toml", write_recipe(recipe))
    return place


def halve(weight: Tensor) -> Tensor:
    """The weight in half precision, unless that rounds it by more than halves should.

    Half precision has 11 bits for numbers between 6e-5 and 65,504. Outside, numbers lose more or
    overflow; whole numbers are not rounded at all.
    """
    if not weight.is_floating_point():
        return weight
    half = weight.half()
    error = torch.linalg.vector_norm(half.double() - weight.double())
    within = bool(error <= ROUNDING * torch.linalg.vector_norm(weight.double()))
    return half if within else weight


def shorten_record(path: Path) -> bytes:
    """The evaluations and the end of a record, without its steps."""
    kept = [line for line in read_record(path) if line["event"] != "train"]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in kept).encode()


def check_sizes(size: int, place: Path, zoo: Path) -> None:
    """Refuse what would make the zoo too large to be fetched on the way."""
    others = sum(folder_bytes(each) for each in zoo.iterdir() if is_entry(each) and each != place)
    if size > MAX_ENTRY_BYTES or size + others > MAX_ZOO_BYTES:
        raise ValueError(
            f"{place.name} has {size / 1e6:.1f} MB, the others {others / 1e6:.1f}; one may have "
            f"{MAX_ENTRY_BYTES / 1e6:.0f} and all of them {MAX_ZOO_BYTES / 1e6:.0f}"
        )


def is_entry(path: Path) -> bool:
    return (path / "manifest.json").is_file() and not path.name.startswith(".")


def folder_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def train_anew(name: str) -> Path:
    """A finished run of a recipe, outside the repository."""
    folder = Path(tempfile.mkdtemp(prefix="regard-zoo-")) / name
    with Progress() as progress:
        return train(name, folder, report=progress.report).folder


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo")
    parser.add_argument("name", help="a recipe that comes with regard")
    parser.add_argument("--run", type=Path, help="a finished run of it; trained anew if left out")
    given = parser.parse_args()
    run = given.run or train_anew(given.name)
    trained = load(run).recipe.name
    if trained != given.name:
        raise SystemExit(f"--run {run} is a run of {trained}, not of {given.name}")
    results.keep(run)
    place = store(run)
    results.write_page()
    print(f"{place}: {folder_bytes(place) / 1e6:.1f} MB, made from {run}")


if __name__ == "__main__":
    main()
