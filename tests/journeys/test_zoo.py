"""From a finished run to a name: stored in half precision, found and used like any run."""

import json

import pytest
import torch
from click.testing import CliRunner
from torch.testing import assert_close

import regard
from benchmarks import zoo
from benchmarks.zoo import halve
from regard.checkpoints.reading import read_tensors
from regard.cli import main


def typed(*words):
    done = CliRunner().invoke(main, [str(word) for word in words])
    return done.exit_code, done.output


@pytest.fixture
def run(recipe, tmp_path, monkeypatch):
    """A finished run named `lstm`, and an empty zoo."""
    (tmp_path / "zoo").mkdir()
    monkeypatch.setenv("REGARD_ZOO", str(tmp_path / "zoo"))
    monkeypatch.delenv("REGARD_DATA", raising=False)
    settings = {"training.steps": 30, "evaluation.expected": {"perplexity": 9.0}}
    return regard.train(recipe("lstm"), tmp_path / "trained", settings)


def test_a_stored_run_is_half_as_large_and_computes_in_float32(run, tmp_path, monkeypatch):
    place = zoo.store(run.folder, tmp_path / "zoo")
    stored = read_tensors(place / "model.safetensors")
    assert {weight.dtype for weight in stored.values()} == {torch.float16}
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    again = regard.load("lstm")
    assert again.folder == place and again.recipe.data.root is None
    for name, weight in run.model.state_dict().items():
        held = again.model.state_dict()[name]
        assert held.dtype == torch.float32
        assert_close(held, weight.half().float(), rtol=0, atol=0)
    told = json.loads((place / "evaluation.json").read_text())
    assert told["perplexity"] == pytest.approx(run.evaluate()["perplexity"], abs=0.01)
    assert told["perplexity"] == pytest.approx(again.evaluate()["perplexity"], rel=1e-6)
    events = [json.loads(line)["event"] for line in (place / "record.jsonl").open()]
    assert set(events) == {"valid", "end"}


def test_a_name_does_wherever_a_run_is_asked_for(run, recipe, tmp_path):
    zoo.store(run.folder, tmp_path / "zoo")
    code, listed = typed("zoo", "--json")
    entries = {entry["name"]: entry for entry in map(json.loads, listed.splitlines())}
    assert entries["lstm"]["task"] == "language-model" and entries["lstm"]["model"] == "rnn"
    assert list(entries["lstm"]["scores"]) == ["perplexity"]
    assert "perplexity" in typed("zoo")[1]
    code, said = typed("generate", "lstm", "the", "--longest", "3", "--method", "greedy")
    assert (code, said.split()[0]) == (0, "the")
    settings = {"training.steps": 1, "training.rate": 0.0, "model": {"from": "lstm"}}
    second = regard.train(recipe("lstm"), tmp_path / "second", {**settings, "text.from": "lstm"})
    # It means the same on another machine, where the zoo lies elsewhere.
    assert second.recipe.model["from"] == second.recipe.text.from_run == "lstm"
    code, told = typed("evaluate", "lstn")
    assert code == 2 and told.count("\n") == 1
    assert "no run folder at lstn, and none in the zoo; did you mean 'lstm'?" in told


def test_what_is_too_large_is_refused_and_leaves_the_zoo_as_it_was(run, tmp_path, monkeypatch):
    monkeypatch.setattr(zoo, "MAX_ENTRY_BYTES", 1000)
    with pytest.raises(ValueError, match=r"lstm has 0\.\d MB"):
        zoo.store(run.folder, tmp_path / "zoo")
    assert not any((tmp_path / "zoo").iterdir())


def test_weights_that_half_precision_would_harm_stay_as_they_are():
    usual = torch.tensor([0.1, -3.0, 1e-6])  # the small one is rounded coarsely, and matters little
    assert halve(usual).dtype == torch.float16
    for harmed in (torch.tensor([1e5, 1.0]), torch.tensor([1e-7, 3e-8]), torch.tensor([7])):
        assert halve(harmed) is harmed
