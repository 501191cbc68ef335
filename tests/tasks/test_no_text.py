"""A task that reads no text at all goes through the same loop, folder and commands."""

from dataclasses import dataclass

import pytest
import torch
from click.testing import CliRunner
from torch import nn
from torch.nn import functional as F

import regard
from regard.cli import main
from regard.data.batches import Batch
from regard.data.feeds import random_stream
from regard.models.catalog import MODELS, Entry
from regard.tasks import TASKS, Check, Objective, Outcome, Resources, Sum, Task

RECIPE = """
seed = 1
[task]
kind = "parity"
bits = 3
[model]
name = "bit-mlp"
hidden_size = 16
[training]
steps = 300
rate = 0.03
evaluate_every = 100
"""


@dataclass(frozen=True)
class Bits(Batch):
    inputs: torch.Tensor  # (batch, bit)
    targets: torch.Tensor  # (batch,)

    @property
    def tokens(self):
        return self.inputs.numel()


@dataclass(frozen=True, kw_only=True)
class ParityConfig:
    bits: int = 4

    def __post_init__(self):
        if self.bits < 1:
            raise ValueError(f"bits ({self.bits}) must be 1 or more")


class BitFeed:
    continues, summary = False, "random bits"

    def __init__(self, bits, seed):
        self.bits, self.seed = bits, seed

    def batches(self, epoch):
        return 10

    def batch(self, epoch, index):
        generator = random_stream(self.seed, epoch, index)
        inputs = torch.randint(2, (32, self.bits), generator=generator)
        return Bits(inputs.float(), inputs.sum(dim=1) % 2)


class Parity(Task):
    config = ParityConfig
    size_names = ("bits",)
    metrics = ("accuracy", "loss")
    select = "accuracy"

    def read(self, split):
        return {"train": 1, "valid": 2, "test": 3}[split]

    def read_files(self, files):
        raise ValueError("parity reads no files")

    def examples(self, examples):
        return examples

    def prepare(self, train, tokenizer):
        return Resources()

    def sizes(self, resources):
        return {"bits": self.settings.bits}

    def training_feed(self, corpus, resources):
        return BitFeed(self.settings.bits, corpus)

    scoring_feed = training_feed

    def objective(self, model):
        return ParityLoss(model)

    def checks(self, model, resources, seed):
        batch = BitFeed(self.settings.bits, seed).batch(0, 0)
        alone = torch.cat([model(batch.pick(torch.tensor([row]))) for row in range(3)])
        yield Check("a batch of 3 = 3 batches of 1", model(batch.pick(torch.arange(3))), alone)


class ParityLoss(Objective):
    def counts(self, batch):
        return {"loss": len(batch)}

    def forward(self, batch, state=None):
        logits = self.model(batch)
        right = (logits.argmax(dim=-1) == batch.targets).sum()
        loss = F.cross_entropy(logits, batch.targets, reduction="sum")
        return Outcome({"loss": loss}, {"accuracy": Sum(right, len(batch))})


@dataclass(frozen=True, kw_only=True)
class BitConfig:
    bits: int
    hidden_size: int = 8


class BitModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.hidden = nn.Linear(config.bits, config.hidden_size)
        self.output = nn.Linear(config.hidden_size, 2)

    def forward(self, batch):
        return self.output(self.hidden(batch.inputs).tanh())


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    monkeypatch.setitem(TASKS, "parity", Parity)
    monkeypatch.setitem(MODELS, "bit-mlp", Entry("", BitConfig, {"parity": BitModel}))
    (tmp_path / "parity.toml").write_text(RECIPE)
    return tmp_path / "parity.toml"


def test_a_run_without_a_tokenizer_is_trained_saved_evaluated_and_verified(recipe, tmp_path):
    run = regard.train(recipe, tmp_path / "run")
    assert not (run.folder / "tokenizer.json").exists()
    assert run.evaluate("test")["accuracy"] == 1.0
    done = CliRunner().invoke(main, ["verify", str(run.folder)])
    assert done.exit_code == 0, done.output
    assert done.output.count("holds") == 2
    again = regard.load(run.folder)
    assert again.evaluate("test")["loss"] == run.evaluate("test")["loss"]


def test_what_needs_words_says_that_there_are_none(recipe, tmp_path):
    run = regard.train(recipe, tmp_path / "run", {"training.steps": 1})
    with pytest.raises(ValueError, match="no tokenizer in this run"):
        _ = run.tokenizer
    for words in (["classify", "a"], ["translate", "a"], ["look", "a"]):
        done = CliRunner().invoke(main, [words[0], str(run.folder), *words[1:]])
        assert done.exit_code == 2
        assert len(done.output.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("task.bits=0", r"parity\.toml: task\.bits \(0\) must be 1 or more"),
        ("task.bit=3", r"parity\.toml: unknown key task\.bit; did you mean 'bits'\?"),
        ("task.bits=many", r"parity\.toml: task\.bits \('many'\): "),
        ("task.bits=true", r"task\.bits \(true\) must not be true or false"),
        ("model.bits=3", r"parity\.toml: model\.bits follows from the data"),
        ("evaluation.select=bleu", r"evaluation\.select \('bleu'\) is no metric of parity"),
    ],
)
def test_settings_of_a_task_are_checked_when_the_recipe_is_read(setting, message, recipe, tmp_path):
    with pytest.raises(ValueError, match=message):
        regard.train(recipe, tmp_path / "run", [setting])
    assert not (tmp_path / "run").exists()
