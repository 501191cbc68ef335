"""An objective of two parts, with parameters of its own: resumed, and shared out."""

import json
import os
import subprocess
import sys

import pytest
import torch

from regard.checkpoints.reading import read_tensors

TASK = '''
"""Label each text, and guess its length: two losses over different things."""
import signal, sys
from pathlib import Path

import torch
from torch import nn

from regard.models.catalog import MODELS, Entry
from regard.tasks import TASKS, Objective, Outcome, Sum
from regard.tasks.classification import Classification, ClassLikelihood
from regard.training.train import train


class LabelsAndWords(ClassLikelihood):
    weights = {"label": 1.0, "word": 0.25}

    def __init__(self, model, label_smoothing):
        super().__init__(model, label_smoothing)
        self.head = nn.Linear(model.config.embedding_size, 1)
        self.register_buffer("baseline", torch.zeros(()))

    def counts(self, batch):
        return {"label": len(batch), "word": batch.tokens}

    def forward(self, batch, state=None):
        outcome = super().forward(batch, state)
        guesses = self.head(self.model.embedding(batch.ids)).squeeze(-1)  # (batch, position)
        errors = (guesses - batch.ids / 10 - self.baseline).square()
        parts = {"label": outcome.parts["loss"], "word": errors[batch.mask].sum()}
        guess = Sum(guesses.detach()[batch.mask].sum(), batch.tokens)
        return outcome._replace(parts=parts, reports={**outcome.reports, "guess": guess})

    def finish_step(self, means):
        self.baseline.lerp_(torch.tensor(means["guess"]), 0.1)


class Guessing(Classification):
    def objective(self, model):
        return LabelsAndWords(model, 0.0)


TASKS["guessing"] = Guessing
MODELS["guessing-dan"] = Entry("dan", "DANConfig", {"guessing": "DAN"})


def report(event, values):
    if "stop" in sys.argv and event == "valid" and values["step"] == 5:
        signal.raise_signal(signal.SIGINT)


recipe, out, *words = sys.argv[1:]
settings = [word for word in words if "=" in word]
train(recipe, Path(out), settings, resume="resume" in words, report=report)
'''
RECIPE = """
seed = 1
[task]
kind = "guessing"
[data]
train = "train.txt"
valid_share = 0.2
[model]
name = "guessing-dan"
embedding_size = 6
hidden_size = 5
layers = 1
[training]
steps = 9
tokens = 14
rate = 0.02
clip = 0.5
evaluate_every = 5
save_every = 1
log_every = 2
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.delenv("REGARD_DATA", raising=False)
    torch.manual_seed(1)
    lengths = torch.randint(1, 8, (40,)).tolist()
    lines = [f"{n % 2} " + " ".join("abcdefg"[:n]) for n in lengths]
    (tmp_path / "train.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "recipe.toml").write_text(RECIPE)
    (tmp_path / "task.py").write_text(TASK)
    return tmp_path


def run(place, out, *words, processes=1):
    launch = ["-m", "torch.distributed.run", f"--nproc-per-node={processes}"]
    done = subprocess.run(
        [sys.executable, *(launch if processes > 1 else []), "task.py", "recipe.toml", out, *words],
        cwd=place,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return place / out


def tensors(folder, name="checkpoints/step-00000009"):
    parts = ("model", "optimizer", "extras")
    return {part: read_tensors(folder / name / f"{part}.safetensors") for part in parts}


def record(folder):
    lines = [json.loads(line) for line in (folder / "record.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k != "seconds"} for line in lines]


@pytest.mark.parametrize(("processes", "sharding"), [(1, "none"), (2, "fsdp")])
def test_a_resumed_run_has_the_objective_s_own_numbers_to_the_last_bit(place, processes, sharding):
    setting = f"training.sharding={sharding}"
    whole = run(place, "whole", setting, processes=processes)
    halved = run(place, "halved", setting, "stop", processes=processes)
    assert not (halved / "manifest.json").exists()
    run(place, "halved", setting, "resume", processes=processes)
    one, other = tensors(whole), tensors(halved)
    own = {"objective/head.weight", "objective/head.bias", "objective/baseline"}
    assert own <= one["extras"].keys()
    assert "objective/head.weight/exp_avg" in one["optimizer"]
    for part in one:
        assert one[part].keys() == other[part].keys()
        assert all(torch.equal(one[part][name], other[part][name]) for name in one[part]), part
    assert record(whole) == record(halved)
    before = tensors(whole, "checkpoints/step-00000008")["extras"]
    for name in own:  # and they do learn
        assert not torch.equal(before[name], one["extras"][name])


@pytest.mark.parametrize("sharding", ["none", "fsdp"])
def test_two_parts_in_two_processes_equal_one_with_twice_the_accumulation(place, sharding):
    one = run(place, "one", "training.accumulate=2", "model.word_dropout=0.0")
    two = run(place, "two", f"training.sharding={sharding}", "model.word_dropout=0.0", processes=2)
    for part, held in tensors(one).items():
        for name, tensor in tensors(two)[part].items():
            if name.endswith("random"):
                continue
            torch.testing.assert_close(tensor, held[name], rtol=1e-5, atol=1e-6)
    for mine, theirs in zip(record(one), record(two), strict=True):
        assert mine.keys() == theirs.keys()
        for name, value in mine.items():
            close = isinstance(value, float)
            assert theirs[name] == (pytest.approx(value, rel=1e-5) if close else value)


def test_parts_and_reports_are_recorded_by_name(place):
    lines = record(run(place, "one"))
    (first, *_) = [line for line in lines if line["event"] == "train"]
    assert first["loss"] == pytest.approx(first["label"] + 0.25 * first["word"])
    assert {"accuracy", "guess"} <= first.keys()
