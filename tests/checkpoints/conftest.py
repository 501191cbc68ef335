"""Run folders of every model, made in no time: nothing is trained."""

import pytest

from regard.checkpoints.folders import write_manifest, write_tensors
from regard.models.catalog import MODELS
from regard.text import TextConfig, Tokenizer
from regard.training.recipe import read_recipe
from regard.training.tasks import build

RECIPE = """
seed = 1
[task]
kind = "{task}"
[data]
train = "train.txt"
[model]
name = "{name}"
{settings}
[training]
feed = "columns"
steps = 1
"""
LINES = ["the cat sees a dog", "a bird hears the cat near the old dog"]


@pytest.fixture
def folder(tmp_path):
    """folder("rnn", "layers = 1") gives a run folder, and the model that was saved in it."""

    def make(name, settings="", place="run"):
        run = tmp_path / place
        run.mkdir()
        task = MODELS[name].task
        (run / "recipe.toml").write_text(RECIPE.format(task=task, name=name, settings=settings))
        tokenizer = Tokenizer.train(LINES, TextConfig(), ("pad", "unknown", "start", "end"))
        tokenizer.save(run / "tokenizer.json")
        model = build(read_recipe(str(run / "recipe.toml")), tokenizer)
        write_tensors(run / "model.safetensors", model.state_dict())
        write_manifest(run)
        return run, model.eval()

    return make
