"""Recipes that start from another run's weights and words."""

import shutil

import pytest
import torch

import regard
from regard.checkpoints.reading import read_tensors
from regard.training.train import train

FEW = {"training.steps": 3, "training.evaluate_every": 3, "training.save_every": 3}


@pytest.fixture
def first(written, tmp_path):
    return regard.train(written("lstm"), tmp_path / "first", FEW)


def go_on(written, tmp_path, name="second", **more):
    settings = {**FEW, "model": {"from": str(tmp_path / "first")}, **more}
    return regard.train(written("lstm"), tmp_path / name, settings)


def test_a_run_starts_from_another_s_settings_weights_and_words(first, written, tmp_path):
    (tmp_path / "train.txt").write_text("the cat hears an unheard-of word\n" * 50)
    still = {"training.rate": 0.0, "text": {"from": str(tmp_path / "first")}}
    second = go_on(written, tmp_path, **still)
    assert second.recipe.model == {**first.recipe.model, "from": str(tmp_path / "first")}
    assert second.tokenizer.to_json() == first.tokenizer.to_json()
    for name, weight in first.model.state_dict().items():
        assert torch.equal(second.model.state_dict()[name], weight)


def test_parts_that_start_anew_are_named(first, written, tmp_path):
    model = {"from": str(tmp_path / "first"), "fresh": ["output"]}
    second = go_on(written, tmp_path, model=model, **{"training.rate": 0.0})
    mine, theirs = second.model.state_dict(), first.model.state_dict()
    same = {name for name in mine if torch.equal(mine[name], theirs[name])}
    assert set(mine) - same == {"output.weight", "output.bias"}


def test_a_run_that_started_from_another_needs_it_no_more(first, written, tmp_path):
    go_on(written, tmp_path)
    shutil.rmtree(tmp_path / "first")
    assert regard.load(tmp_path / "second").generate("the", longest=2)


def test_it_is_resumed_without_the_other_to_the_same_bits(first, written, tmp_path):
    """As if it had been stopped behind its first step."""
    settings = [f'model={{from="{tmp_path / "first"}"}}', "training.save_every=1"]
    settings += ["training.steps=3", "training.keep=3"]
    train(str(written("lstm")), tmp_path / "whole", settings)
    shutil.copytree(tmp_path / "whole", tmp_path / "half")
    for name in ("manifest.json", "model.safetensors"):
        (tmp_path / "half" / name).unlink()
    for step in (2, 3):
        shutil.rmtree(tmp_path / "half" / "checkpoints" / f"step-{step:08d}")
    shutil.rmtree(tmp_path / "first")
    assert train(str(tmp_path / "half" / "recipe.toml"), tmp_path / "half", resume=True)[1]
    one, other = (read_tensors(tmp_path / n / "model.safetensors") for n in ("whole", "half"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_tokenizer_json_serves_as_well(first, written, tmp_path):
    file = tmp_path / "first" / "tokenizer.json"
    second = regard.train(written("lstm"), tmp_path / "second", {**FEW, "text.from": str(file)})
    assert second.tokenizer.to_json() == first.tokenizer.to_json()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": {"from": "nowhere"}}, r"from \('.*nowhere'\) must be the folder of a finished"),
        ({"text": {"from": "nowhere"}}, r"from \('.*nowhere'\) must be the folder of a finished"),
        (
            {"model": {"from": "FIRST", "hidden_size": 5}},
            r"model\.from \(.*\); model\.fresh names .*reader\.embedding\.weight is",
        ),
        (
            {"model": {"from": "FIRST", "tied": True, "embedding_size": 4}},
            r"narrow\.weight is missing",
        ),
        ({"model": {"from": "FIRST", "fresh": ["ouput"]}}, r"model\.fresh \('ouput'\) is no part"),
        ({"model.fresh": ["output"]}, r"model\.fresh names what does not come from model\.from"),
        (
            {"text": {"from": "FIRST", "kind": "bpe"}},
            r"text.*from \(.*\) brings its own words: kin",
        ),
        ({"text": {"form": "FIRST"}}, r"unknown key text\.form"),
    ],
)
def test_what_cannot_be_started_from_is_refused_in_one_line(
    settings, message, first, written, tmp_path
):
    place = str(tmp_path / "first")
    settings = {
        key: {k: place if v == "FIRST" else v for k, v in value.items()}
        if isinstance(value, dict)
        else value
        for key, value in settings.items()
    }
    with pytest.raises(ValueError, match=message) as caught:
        regard.train(written("lstm"), tmp_path / "second", {**FEW, **settings})
    assert "\n" not in str(caught.value)
