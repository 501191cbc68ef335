"""Two trainings on one machine against one: `python -m benchmarks.sharing`.

Each is `regard train` as a user starts it, nothing set by hand, on text made here. What counts is
the tokens a second of both together, over those of one alone on a quiet machine, and what brief
spinning costs the one that has the machine to itself.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.racing import Row, print_table
from regard.data.numbers import number_examples
from regard.openmp import WAIT_VARIABLES
from regard.training.record import read_record

SECONDS, WARM_UP = 20, 5
ROUNDS = 3
LONG_SPINS = {"GOMP_SPINCOUNT": "300000"}  # what the runtime does when nobody asks for less
ROWS, LENGTH = 12, 64
RECIPE = f"""
seed = 1
[task]
kind = "language-model"
[data]
train = "text.txt"
unit = "character"
[text]
kind = "character"
[model]
name = "gpt2"
layers = 4
heads = 4
model_size = 128
longest = {LENGTH}
activation = "gelu"
bias = false
[training]
feed = "windows"
steps = 1000000
batch = {ROWS}
length = {LENGTH}
log_every = 5
evaluate_every = 1000000
"""


def tokens_per_second(trainings: int, folder: Path, waiting: dict[str, str]) -> float:
    """All tokens a second of so many trainings at once."""
    environment = {k: v for k, v in os.environ.items() if k not in WAIT_VARIABLES} | waiting
    places = [Path(tempfile.mkdtemp(dir=folder)) / "run" for _ in range(trainings)]
    command = [sys.executable, "-m", "regard", "train", str(folder / "recipe.toml"), "--out"]
    runs = [
        subprocess.Popen([*command, str(place)], env=environment, stderr=subprocess.DEVNULL)
        for place in places
    ]
    while not all((place / "record.jsonl").is_file() for place in places):
        time.sleep(0.1)
    time.sleep(SECONDS)
    for run in runs:
        run.send_signal(signal.SIGKILL)
        run.wait()
    return sum(map(speed, places))


def speed(place: Path) -> float:
    """Tokens a second between the first line after the warm-up and the last; if it came no further,
    up to the only one."""
    whole = (place / "record.jsonl").read_text(encoding="utf-8").rpartition("\n")[0]
    (place / "whole.jsonl").write_text(whole, encoding="utf-8")  # a line may be half written
    lines = [{"step": 0, "seconds": 0.0}, *read_record(place / "whole.jsonl")]
    warm = [line for line in lines if line["seconds"] >= WARM_UP]
    first, last = (warm[0], warm[-1]) if len(warm) > 1 else (lines[0], lines[-1])
    steps = last["step"] - first["step"]
    return steps * ROWS * LENGTH / max(last["seconds"] - first["seconds"], 1e-9)


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
        examples = number_examples("de", 1, "train")
        (folder / "text.txt").write_text(
            "\n".join(examples[i].source_text for i in range(5000)), encoding="utf-8"
        )
        ways = {"alone": (1, {}), "two": (2, {}), "long": (1, LONG_SPINS), "both": (2, LONG_SPINS)}
        found: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(ROUNDS):
            for way, (trainings, waiting) in ways.items():
                found[way].append(tokens_per_second(trainings, folder, waiting))
    speeds = {way: statistics.median(each) for way, each in found.items()}
    return [
        _row("two trainings at once, together, against one", speeds["two"], speeds["alone"], 0.9),
        _row("one alone, against long spinning", speeds["alone"], speeds["long"], 0.97),
        _row("(two at once, both with long spinning)", speeds["both"], speeds["long"], 0.0),
    ]


def _row(what: str, ours: float, theirs: float, bar: float) -> Row:
    ratio = ours / theirs
    limit = f"≥ {bar:g} ×" if bar else ""
    return Row(
        what, f"{ours:,.0f} tok/s", f"{theirs:,.0f} tok/s", f"{ratio:.2f} ×", limit, ratio >= bar
    )


if __name__ == "__main__":
    print_table(f"Sharing {os.cpu_count()} cores", measure())
