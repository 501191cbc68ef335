"""Two processes end like one that takes twice the batches at each step."""

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

def tell(event, values):
    if event == "train" and values["step"] == 5:
        signal.raise_signal(signal.SIGINT)

_, ended = train(sys.argv[1], Path(sys.argv[2]), sys.argv[3:], tell=tell)
assert not ended
"""
SETTINGS = [
    "model.dropout=0.0",
    "training.steps=8",
    "training.evaluate_every=4",
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


@pytest.mark.parametrize("sharding", ["none", "fsdp"])
def test_two_processes_that_were_stopped_end_like_two_that_were_not(sharding, recipe, tmp_path):
    path, settings = recipe("transformer"), [f"training.sharding={sharding}", "model.dropout=0.1"]
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
    assert whole.keys() == ended.keys()
    assert all(torch.equal(whole[name], ended[name]) for name in whole)
