"""A language model from a text to an answer, by the commands a user types."""

import json
import re

import pytest
import tokenizers
from click.testing import CliRunner

from regard.checkpoints.folders import write_manifest, write_tensors
from regard.checkpoints.reading import read_tensors
from regard.cli import main
from regard.text import Tokenizer


def typed(*words) -> str:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.output


def refused(*words) -> str:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 2, done.output
    assert len(done.output.strip().splitlines()) == 1, done.output
    return done.output


@pytest.fixture
def run(recipe, tmp_path):
    typed("train", recipe("transformer"), "--out", tmp_path / "run")
    return tmp_path / "run"


def test_train_evaluate_generate_look_verify(run, tmp_path):
    values = json.loads(typed("evaluate", run, "--json"))
    assert {"loss", "perplexity", "bits", "tokens", "seconds", "signature"} <= values.keys()
    assert values["perplexity"] < 14
    answer = json.loads(typed("generate", run, "the cat", "--json", "--longest", "4"))
    assert answer["input"] == "the cat"
    assert typed("generate", run, "the cat", "--longest", "4").startswith("the cat")
    assert "layers.0.attention" in typed("look", run, "the cat sees a dog")
    typed("look", run, "the cat sees a dog", "--out", tmp_path / "look.html")
    assert "FAILS" not in typed("verify", run)


def test_streamed_words_are_those_that_come_at_once(run):
    whole = typed("generate", run, "the cat", "--longest", "6", "--method", "greedy")
    words = typed("generate", run, "the cat", "--longest", "6", "--method", "greedy", "--stream")
    assert words.strip() == whole.strip()


def test_the_tokenizer_of_a_run_is_one_that_others_load(run):
    theirs = tokenizers.Tokenizer.from_file(str(run / "tokenizer.json"))
    ours = Tokenizer.load(run / "tokenizer.json")
    text = "the old cat hears nothing"
    assert theirs.encode(text).ids == ours.encode(text).ids


def test_other_text_is_judged_from_a_file_too(run, tmp_path):
    (tmp_path / "other.txt").write_text("the cat sees the dog\n")
    values = json.loads(typed("evaluate", run, "--data", tmp_path / "other.txt", "--json"))
    assert values["tokens"] == 6


def test_a_file_to_judge_by_is_looked_for_from_here_first(run, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "other.txt").write_text("the cat sees the dog\n")
    monkeypatch.chdir(tmp_path / "here")
    assert json.loads(typed("evaluate", run, "--data", "other.txt", "--json"))["tokens"] == 6
    there = json.loads(typed("evaluate", run, "--data", "valid.txt", "--json"))  # by the recipe
    assert there["tokens"] == json.loads(typed("evaluate", run, "--json"))["tokens"]


@pytest.mark.parametrize("name", ["nothing.txt", "binary.txt"])
def test_a_file_that_cannot_be_judged_by_is_named(name, run, tmp_path):
    (tmp_path / "binary.txt").write_bytes(b"\x00\x01")
    assert name in refused("evaluate", run, "--data", tmp_path / name)
    assert name in refused("generate", run, "--input", tmp_path / name)


def test_a_damaged_run_is_refused_in_one_line(run):
    (run / "model.safetensors").write_bytes(b"damaged")
    assert "is damaged" in refused("generate", run, "the")


def test_weights_of_another_recipe_are_refused_in_one_line(run):
    tensors = read_tensors(run / "model.safetensors")
    del tensors["norm.weight"]
    write_tensors(run / "model.safetensors", tensors)
    write_manifest(run)
    told = refused("generate", run, "the")
    assert "the weights are not those of its recipe" in told
    assert "norm.weight" in told


def test_a_folder_that_is_no_run_is_refused_in_one_line(tmp_path):
    assert "no run folder" in refused("evaluate", tmp_path / "nothing")
    assert "manifest.json is missing" in refused("evaluate", tmp_path)


def test_a_run_from_a_newer_regard_is_refused_in_one_line(run):
    (run / "manifest.json").write_text(json.dumps({"version": 9, "files": {}}))
    assert "written by a newer regard (format 9" in refused("generate", run, "the")


def test_a_sentence_longer_than_the_positions_cannot_be_judged_whole(recipe, tmp_path):
    path, out = recipe("transformer"), tmp_path / "run"
    settings = ("--set", "training.feed=sentences", "--set", "training.steps=2")
    typed("train", path, "--out", out, *settings)
    (tmp_path / "long.txt").write_text("the cat " * 20 + "\n")
    told = refused("evaluate", out, "--data", tmp_path / "long.txt")
    assert "the text has 41 tokens, but this model has 16 positions" in told


def test_a_prompt_longer_than_the_positions_goes_on_from_its_last_words_if_asked(run):
    words = ("generate", run, "the cat " * 20, "--longest", "3")
    assert "the prompt has 40 tokens, and the model has 16 positions" in refused(*words)
    said = typed(*words, "--method", "greedy", "--sliding")
    assert said.startswith("the cat " * 19)
    assert "16 positions" in refused(*words, "--method", "beam", "--beam", "2", "--sliding")


def test_a_text_longer_than_the_positions_is_refused_in_one_line(run):
    assert "16" in refused("look", run, "the cat " * 20)


def test_a_translation_is_not_asked_of_a_language_model(run):
    assert "is a run of language-model, which does generate" in refused("translate", run, "the cat")


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "train.txt"), (b"\x00\x01binary", "train.txt"), (b"caf\xe9\n", "train.txt")],
)
def test_a_text_that_cannot_be_read_is_named(content, message, recipe, tmp_path):
    path = recipe("lstm")
    (tmp_path / "train.txt").write_bytes(content)
    assert message in refused("train", path, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_unknown_model_gets_the_nearest_name(recipe, tmp_path):
    told = refused("train", recipe("lstm"), "--set", "model.name=rnm", "--out", tmp_path / "run")
    assert "rnn" in told


def test_parallel_files_of_different_length_are_counted(tmp_path):
    path = tmp_path / "pairs.toml"
    head = '[task]\nkind = "translation"\n[data]\ntrain = ["a.en", "a.de"]\n'
    model = '[model]\nname = "bahdanau"\n[training]\nfeed = "sentences"\nsteps = 1\n'
    path.write_text(head + model)
    (tmp_path / "a.en").write_text("one\ntwo\nthree\n")
    (tmp_path / "a.de").write_text("eins\nzwei\n")
    told = refused("train", path, "--out", tmp_path / "run")
    assert re.search(r"a\.en has 3, .*a\.de has 2", told)
    assert not (tmp_path / "run").exists()
