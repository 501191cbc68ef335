"""SIGKILL at any moment, also inside a save: the run ends as if nothing had happened."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest
import torch

from regard.checkpoints.reading import read_tensors
from regard.running import load
from regard.training.loop import Training
from regard.training.saving import newest_checkpoint
from regard.training.train import train


def started(recipe, out, *more):
    command = [sys.executable, "-m", "regard", "train", str(recipe), "--out", str(out), *more]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, **quiet)


def newest(folder):
    return max(path.name for path in folder.glob("checkpoints/step-*"))


def outcome(folder):
    """Everything a run leaves, but for its times."""
    last = sorted((folder / "checkpoints").glob("step-*"))[-1]
    parts = {
        name: read_tensors(last / f"{name}.safetensors")
        for name in ("model", "optimizer", "extras")
    }
    parts["final"] = read_tensors(folder / "model.safetensors")
    lines = [json.loads(line) for line in (folder / "record.jsonl").read_text().splitlines()]
    record = [{k: v for k, v in line.items() if k != "seconds"} for line in lines]
    return last.name, parts, record


def killed_often(recipe, out, kills, chance, settings):
    """Start, kill after a while, resume; until it has been killed often enough and ends."""
    done, inside = 0, 0
    while True:
        more = ["--resume"] if (out / "recipe.toml").is_file() else []
        if not more and out.exists():
            raise AssertionError("a killed start left a folder that cannot be resumed")
        process = started(recipe, out, *more, *settings)
        if done >= kills:
            assert process.wait(timeout=240) == 0
            return inside
        begun = time.monotonic()
        while not list(out.glob("checkpoints/step-*")) and process.poll() is None:
            time.sleep(0.01)
            assert time.monotonic() - begun < 60
        if chance.random() < 0.5:
            # Wait for a save to be under way: its folder is hidden until it is whole.
            while not list(out.glob("checkpoints/.step-*")) and process.poll() is None:
                pass
            inside += 1
        else:
            time.sleep(chance.random() * 0.4)
        process.send_signal(signal.SIGKILL)
        process.wait()
        done += 1
        assert not (out / "manifest.json").is_file(), f"the run ended after {done} kills: too short"


def same_after_kills(name, kills, steps, recipe, tmp_path):
    path, settings = recipe(name), ("--set", f"training.steps={steps}")
    assert started(path, tmp_path / "whole", *settings).wait(timeout=240) == 0
    chance = random.Random(kills)
    inside = killed_often(path, tmp_path / "killed", kills, chance, settings)
    (step, parts, record), (other_step, other_parts, other_record) = (
        outcome(tmp_path / folder) for folder in ("whole", "killed")
    )
    assert step == other_step
    assert record == other_record
    for part, tensors in parts.items():
        assert tensors.keys() == other_parts[part].keys()
        for key, tensor in tensors.items():
            assert torch.equal(tensor, other_parts[part][key]), (part, key)
    return inside


def test_three_kills_change_nothing(recipe, tmp_path):
    same_after_kills("lstm", 3, 300, recipe, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lstm", "transformer"])
def test_twenty_kills_some_inside_a_save_change_nothing(name, recipe, tmp_path):
    assert same_after_kills(name, 20, 2000, recipe, tmp_path) >= 5


@pytest.mark.slow
def test_kills_while_a_run_ends_change_nothing(recipe, tmp_path, monkeypatch):
    """With weights large enough for a kill to fall into their writing; each run is loadable then,
    or says that it is not finished."""
    path = recipe("lstm")
    settings = ["model.hidden_size=700", "training.steps=2", "training.keep=1"]
    train(str(path), tmp_path / "whole", settings)
    whole = outcome(tmp_path / "whole")

    def stop(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as changed, pytest.raises(KeyboardInterrupt):
        changed.setattr(Training, "finish", stop)
        train(str(path), tmp_path / "stopped", settings)
    chance, inside = random.Random(1), 0
    for number in range(20):
        out = tmp_path / f"run-{number}"
        shutil.copytree(tmp_path / "stopped", out)
        more = [word for setting in settings for word in ("--set", setting)]
        process = started(path, out, "--resume", *more)
        hidden = ".model.safetensors-*" if number % 2 else "checkpoints/.step-*"
        while not list(out.glob(hidden)) and process.poll() is None:
            pass
        time.sleep(chance.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        inside += not (out / "manifest.json").exists()
        if (out / "manifest.json").exists():
            load(out)
        found = newest_checkpoint(out / "checkpoints")
        assert found is not None and found[1] == []
        train(str(path), out, settings, resume=True)
        load(out)
        step, parts, record = outcome(out)
        assert (step, record) == (whole[0], whole[2])
        for part, tensors in parts.items():
            assert all(torch.equal(tensor, whole[1][part][key]) for key, tensor in tensors.items())
        shutil.rmtree(out)
    assert inside >= 5


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_polite_signal_saves_and_exits_with_three(number, recipe, tmp_path):
    path, out = recipe("lstm"), tmp_path / "run"
    process = started(path, out, "--set", "training.steps=100000")
    while not list(out.glob("checkpoints/step-*")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    assert process.wait(timeout=30) == 3
    assert not (out / "manifest.json").exists()
    more = ["--resume", "--set", "training.steps=100000"]
    before = newest(out)
    again = started(path, out, *more)
    while newest(out) == before:
        assert again.poll() is None
        time.sleep(0.01)
    again.send_signal(number)
    assert again.wait(timeout=30) == 3
