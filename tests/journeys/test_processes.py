"""Two processes end like one that takes twice the batches at each step."""

import json
import math
import os
import subprocess
import sys

import pytest
import torch

from regard.checkpoints.reading import read_tensors

STOPPING = """
import signal, sys
from pathlib import Path
from regard.training.train import train

def report(event, values):
    if event == "valid" and values["step"] == 5:  # and a loss is half summed up
        signal.raise_signal(signal.SIGINT)

_, ended = train(sys.argv[1], Path(sys.argv[2]), sys.argv[3:], report=report)
assert not ended
"""
BREAKING = """
import math, os, sys
from pathlib import Path
from regard.tasks.language_model import NextWord
from regard.training.train import train

forward, calls = NextWord.forward, []

def broken(self, batch, state=None):
    outcome = forward(self, batch, state)
    loss = outcome.parts["loss"]
    calls.append(loss)
    if os.environ["RANK"] == "1" and len(calls) == 3:
        if sys.argv[3] == "loss":
            loss = loss * math.nan
        else:
            loss.register_hook(lambda gradient: gradient * math.inf)
    return outcome._replace(parts={"loss": loss})

NextWord.forward = broken
try:
    train(sys.argv[1], Path(sys.argv[2]), sys.argv[4:])
except FloatingPointError as error:
    sys.stdout.write(f"{error}\\n")
"""
SETTINGS = [
    "model.dropout=0.0",
    "training.steps=8",
    "training.evaluate_every=5",
    "training.log_every=2",
    "training.clip=0.3",
]


def launched(processes, *words):
    launch = ["-m", "torch.distributed.run", f"--nproc-per-node={processes}"]
    done = subprocess.run(
        [sys.executable, *(launch if processes > 1 else []), *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def trained(recipe, out, processes, *settings, resume=False):
    words = [w for setting in (*SETTINGS, *settings) for w in ("--set", setting)]
    words += ["--resume"] if resume else []
    said = launched(processes, "-m", "regard", "train", recipe, "--out", out, *words)
    return read_tensors(out / "model.safetensors"), said


def record_of(folder):
    lines = [json.loads(line) for line in (folder / "record.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k != "seconds"} for line in lines]


@pytest.mark.parametrize("sharding", ["none", "fsdp"])
def test_two_processes_equal_one_with_twice_the_accumulation(sharding, recipe, tmp_path):
    path = recipe("transformer")
    one, _ = trained(path, tmp_path / "one", 1, "training.accumulate=2")
    two, said = trained(path, tmp_path / "two", 2, f"training.sharding={sharding}")
    assert said.count("run:") == 1
    for name, weight in one.items():
        torch.testing.assert_close(two[name], weight, rtol=1e-5, atol=1e-6)


def test_columns_are_shared_out_by_rows(recipe, tmp_path):
    path = recipe("lstm")
    one, _ = trained(path, tmp_path / "one", 1)
    two, _ = trained(path, tmp_path / "two", 2)
    for name, weight in one.items():
        torch.testing.assert_close(two[name], weight, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "sharding"),
    [("transformer", "none"), ("transformer", "fsdp"), ("lstm", "none"), ("lstm", "fsdp")],
)
def test_two_processes_that_were_stopped_end_like_two_that_were_not(
    model, sharding, recipe, tmp_path
):
    path, settings = recipe(model), [f"training.sharding={sharding}", "model.dropout=0.1"]
    whole, _ = trained(path, tmp_path / "whole", 2, *settings)
    (tmp_path / "stopping.py").write_text(STOPPING)
    halved = tmp_path / "halved"
    launched(2, tmp_path / "stopping.py", path, halved, *SETTINGS, *settings)
    assert not (halved / "manifest.json").exists()
    assert max(place.name for place in halved.glob("checkpoints/step-*")) == "step-00000005"
    ended, _ = trained(path, halved, 2, *settings, resume=True)
    last = "checkpoints/step-00000008"
    for part in ("model", "optimizer", "extras"):
        one, other = (
            read_tensors(tmp_path / run / last / f"{part}.safetensors")
            for run in ("whole", "halved")
        )
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one), part
    one, other = (record_of(tmp_path / run) for run in ("whole", "halved"))
    assert one == other
    assert whole.keys() == ended.keys()
    assert all(torch.equal(whole[name], ended[name]) for name in whole)


@pytest.mark.parametrize(("first", "then"), [(2, 1), (1, 2)])
def test_a_run_goes_on_with_another_number_of_processes(first, then, recipe, tmp_path):
    (tmp_path / "stopping.py").write_text(STOPPING)
    path, run = recipe("lstm"), tmp_path / "run"
    launched(first, tmp_path / "stopping.py", path, run, *SETTINGS)
    trained(path, run, then, resume=True)
    assert (run / "checkpoints" / "step-00000008").is_dir()


def test_two_processes_evaluate_once_behind_each_epoch_s_end(recipe, tmp_path):
    path = recipe("transformer")
    written = path.read_text().replace("evaluate_every = 40", "")
    path.write_text(written.replace("steps = 120", "epochs = 3"))
    words = (tmp_path / "train.txt").read_text().split()
    batches = (1 + len(words) + 100) // (4 * 12)  # of the text, with an end behind each line
    assert batches % 2 == 1  # so that two at a step go over the end of the first epoch
    launched(2, "-m", "regard", "train", path, "--out", tmp_path / "run")
    steps = [line["step"] for line in record_of(tmp_path / "run") if line["event"] == "valid"]
    assert steps == [math.ceil(epoch * batches / 2) for epoch in (1, 2, 3)]


@pytest.mark.parametrize("sharding", ["none", "fsdp"])
@pytest.mark.parametrize(
    ("broken", "told"),
    [("loss", "the loss is nan"), ("gradient", "the norm of the gradients is nan")],
)
def test_what_breaks_in_one_process_stops_them_all(broken, told, sharding, recipe, tmp_path):
    (tmp_path / "breaking.py").write_text(BREAKING)
    settings = [*SETTINGS, f"training.sharding={sharding}", "training.save_every=1"]
    words = (recipe("transformer"), tmp_path / "run", broken, *settings)
    said = launched(2, tmp_path / "breaking.py", *words).splitlines()
    assert len(said) == 2
    for line in said:
        assert line.startswith(f"{told} at step 3 (epoch 0, batches 4 to 5); ")
        assert "the newest checkpoint is step-00000002" in line
    weights = read_tensors(tmp_path / "run/checkpoints/step-00000002/model.safetensors")
    assert all(torch.isfinite(weight).all() for weight in weights.values())
