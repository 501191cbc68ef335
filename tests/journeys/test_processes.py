"""Two processes end like one that takes twice the batches at each step."""

import os
import subprocess
import sys

import pytest
import torch

from regard.checkpoints.folders import read_tensors

SETTINGS = ["model.dropout=0.0", "training.steps=8", "training.evaluate_every=4"]


def trained(recipe, out, processes, *settings):
    launch = ["-m", "torch.distributed.run", f"--nproc-per-node={processes}"]
    command = [sys.executable, *(launch if processes > 1 else []), "-m", "regard", "train"]
    words = [w for setting in (*SETTINGS, *settings) for w in ("--set", setting)]
    done = subprocess.run(
        [*command, str(recipe), "--out", str(out), *words],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return read_tensors(out / "model.safetensors"), done.stdout


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
