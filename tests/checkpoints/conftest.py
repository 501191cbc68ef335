"""Run folders of every model, made in no time: nothing is trained."""

import pytest

from regard.checkpoints.folders import write_manifest, write_tensors
from regard.models.catalog import MODELS
from regard.tasks import Resources, make_task
from regard.text import TextConfig, Tokenizer
from regard.training.preparing import build
from regard.training.recipe import read_recipe

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
feed = "{feed}"
steps = 1
"""
LINES = ["the cat sees a dog", "a bird hears the cat near the old dog"]


@pytest.fixture
def folder(tmp_path):
    """folder("rnn", "layers = 1") gives a run folder, and the model that was saved in it."""

    def make(name, settings="", place="run"):
        run = tmp_path / place
        run.mkdir()
        kind = next(iter(MODELS[name].tasks))
        feeds = {"language-model": "columns", "bits": "episodes", "pretraining": "texts"}
        feed = feeds.get(kind, "sentences")
        content = RECIPE.format(task=kind, name=name, settings=settings, feed=feed)
        (run / "recipe.toml").write_text(content)
        tokenizer = Tokenizer.train(LINES, TextConfig(), ("pad", "unknown", "start", "end"))
        labels = ("no", "yes") if kind == "classification" else ()
        resources = Resources(None if kind == "bits" else tokenizer, labels)
        resources.save(run)
        recipe = read_recipe(str(run / "recipe.toml"))
        model = build(recipe, make_task(recipe), resources)
        write_tensors(run / "model.safetensors", model.state_dict())
        write_manifest(run)
        return run, model.eval()

    return make
