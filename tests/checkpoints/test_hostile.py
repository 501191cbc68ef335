"""Run folders that were made to do harm: one line and exit code 2, whichever command opens them."""

import json
import os
import subprocess
import sys

import pytest
import torch
from click.testing import CliRunner

from regard.checkpoints.folders import write_manifest, write_tensors
from regard.checkpoints.reading import read_tensors
from regard.cli import main
from regard.models.ngram import Ngram, NgramConfig

GPT = "model_size = 12\nheads = 3\nlayers = 1\nlongest = 19\n"
COMMANDS = {
    "generate": ("RUN", "the cat", "--longest", "3"),
    "translate": ("RUN", "the cat"),
    "evaluate": ("RUN",),
    "verify": ("RUN",),
    "look": ("RUN", "the cat"),
}


@pytest.fixture
def run(folder):
    return folder("gpt2", GPT)[0]


def manifest(run, change):
    content = json.loads((run / "manifest.json").read_text())
    change(content["files"])
    (run / "manifest.json").write_text(json.dumps(content))


def empty_manifest(run):
    (run / "manifest.json").write_text('{"version": 1, "files": {}}')


def unlisted_weights(run):
    manifest(run, lambda files: files.pop("model.safetensors"))


def a_way_up(run):
    (run.parent / "secret").write_text("secret")
    manifest(run, lambda files: files.update({"../secret": files["recipe.toml"]}))


def a_link_out(run):
    (run / "model.safetensors").rename(run.parent / "elsewhere.safetensors")
    (run / "model.safetensors").symlink_to("../elsewhere.safetensors")


def nested_json(run):
    (run / "manifest.json").write_text("[" * 100_000 + "]" * 100_000)


def nested_toml(run):
    recipe = (run / "recipe.toml").read_text()
    (run / "recipe.toml").write_text("name = " + "[" * 10_000 + "]" * 10_000 + recipe)
    write_manifest(run)


def a_list_for_a_table(run):
    content = json.loads((run / "manifest.json").read_text())
    content["files"] = list(content["files"].items())
    (run / "manifest.json").write_text(json.dumps(content))


def flipped_bytes(run):
    content = bytearray((run / "model.safetensors").read_bytes())
    content[-3] ^= 0xFF
    (run / "model.safetensors").write_bytes(content)


EIGHT = {
    empty_manifest: "manifest.json lists no files",
    unlisted_weights: "manifest.json does not list model.safetensors, so it is not read",
    a_way_up: "manifest.json lists '../secret', which is not the name of a file in its folder",
    a_link_out: "model.safetensors is a link, and regard follows none inside a run folder",
    nested_json: "manifest.json is nested too deeply: more than 32 levels",
    nested_toml: "recipe.toml is nested too deeply: more than 32 levels",
    a_list_for_a_table: "manifest.json is not a manifest of regard",
    flipped_bytes: "model.safetensors is damaged: its content is not what was saved",
}


def nested_tokenizer(run):
    (run / "tokenizer.json").write_text('{"a":' * 100_000)
    write_manifest(run)


def a_tokenizer_that_aborts(run):
    state = json.loads((run / "tokenizer.json").read_text())
    state["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": "/////wAAAAAAAAAA"}
    (run / "tokenizer.json").write_text(json.dumps(state))
    write_manifest(run)


def a_tokenizer_of_billions(run):
    state = json.loads((run / "tokenizer.json").read_text())
    state["model"]["vocab"]["cat"] = 4_000_000_000
    (run / "tokenizer.json").write_text(json.dumps(state))
    write_manifest(run)


def a_tokenizer_of_another_size(run):
    state = json.loads((run / "tokenizer.json").read_text())
    state["model"]["vocab"]["more"] = 13
    (run / "tokenizer.json").write_text(json.dumps(state))
    write_manifest(run)


def a_pipe(run):
    (run / "tokenizer.json").unlink()
    os.mkfifo(run / "tokenizer.json")


def a_huge_model(run):
    text = (run / "recipe.toml").read_text()
    (run / "recipe.toml").write_text(text.replace("model_size = 12", "model_size = 9_000_000"))
    write_manifest(run)


def a_billion_layers(run):
    text = (run / "recipe.toml").read_text()
    (run / "recipe.toml").write_text(text.replace("layers = 1", "layers = 1_000_000_000"))
    write_manifest(run)


def a_header_without_end(run):
    (run / "model.safetensors").write_bytes(b"\xff" * 8 + b"{}")
    write_manifest(run)


def weights_of_bytes(run):
    tensors = read_tensors(run / "model.safetensors")
    write_tensors(run / "model.safetensors", {k: t.byte() for k, t in tensors.items()})
    write_manifest(run)


def a_recipe_without_end(run):
    with (run / "recipe.toml").open("ab") as file:
        file.truncate(1 << 30)
    write_manifest(run)


def a_name_for_the_terminal(run):
    manifest(run, lambda files: files.update({"\x1b[2Jgone": files["recipe.toml"]}))


def a_recipe_for_the_terminal(run):
    (run / "recipe.toml").write_text('"\\u001b[2Jgone" = 1\n' + (run / "recipe.toml").read_text())
    write_manifest(run)


def a_recipe_that_is_none(run):
    (run / "recipe.toml").write_bytes(b"\x00\xff")
    write_manifest(run)


MORE = {
    nested_tokenizer: "tokenizer.json",
    a_tokenizer_that_aborts: "normalizer ('Precompiled') is not one of",
    a_tokenizer_of_another_size: "embedding.weight is float32 (13, 12) and should be",
    a_tokenizer_of_billions: "model ('WordLevel') has settings that a text could not bear",
    a_pipe: "tokenizer.json is not a regular file",
    a_huge_model: "embedding.weight is float32 (13, 12) and should be float32 (13, 9000000)",
    a_billion_layers: "the model has more than",
    a_header_without_end: "model.safetensors is damaged",
    weights_of_bytes: "embedding.weight is uint8 (13, 12) and should be float32 (13, 12)",
    a_recipe_without_end: "recipe.toml has 1.1 GB, and regard reads up to",
    a_recipe_that_is_none: "recipe.toml is not TOML",
    a_name_for_the_terminal: r"manifest.json lists '\x1b[2Jgone', which is not the name",
    a_recipe_for_the_terminal: r"unknown key '\x1b[2Jgone'",
}


def typed(command, run):
    words = [str(run) if word == "RUN" else word for word in COMMANDS[command]]
    return CliRunner().invoke(main, [command, *words])


def test_a_folder_to_which_nothing_was_done_is_opened(run):
    done = typed("generate", run)
    assert done.exit_code == 0, done.output
    assert typed("look", run).exit_code == 0


# All commands open a folder by the same call: one meets every harm, the others one at each stage.
# Those of the manifest come first, then a recipe, a tokenizer and weights.
STAGES = (empty_manifest, a_way_up, nested_toml, a_tokenizer_that_aborts, flipped_bytes)
HARMS = [("generate", harm) for harm in (*EIGHT, *MORE)]
HARMS += [(other, harm) for other in COMMANDS if other != "generate" for harm in STAGES]


@pytest.mark.parametrize(
    ("command", "harm"), HARMS, ids=[f"{command}-{harm.__name__}" for command, harm in HARMS]
)
def test_a_hostile_folder_gets_one_line_and_exit_code_2(command, harm, run):
    harm(run)
    done = typed(command, run)
    print(done.output, end="")  # `pytest -s` shows what a user sees
    assert done.exit_code == 2, done.output
    [line] = done.output.splitlines()
    assert line.startswith("regard: ")
    assert {**EIGHT, **MORE}[harm] in line
    assert len(line) < 1000


@pytest.fixture
def counted(folder, tmp_path):
    """A folder of n-grams, whose arrays are not a model's parameters."""
    run, _ = folder("rnn", "hidden_size = 5\n")
    recipe = (run / "recipe.toml").read_text().replace("hidden_size = 5", "order = 2")
    (run / "recipe.toml").write_text(recipe.replace('"rnn"', '"ngram"'))
    model = Ngram(NgramConfig(vocabulary_size=13, order=2)).fit([4, 5, 3, 4, 6, 3], end=3)
    arrays = {name: torch.from_numpy(array) for name, array in model.tensors().items()}
    write_tensors(run / "model.safetensors", arrays)
    write_manifest(run)
    return run


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t["levels.2.keys"].neg_(), "levels.2.keys must grow from 0 to below 169"),
        (lambda t: t["levels.2.kept"].fill_(torch.nan), "levels.2 must hold shares"),
        (lambda t: t["end"].fill_(10**9), "must be one id of the vocabulary"),
        (lambda t: t.pop("levels.2.keys"), "tensors has no 'levels.2.keys'"),
        (
            lambda t: t.update({"levels.2.kept": t["levels.2.kept"].bfloat16()}),
            "cannot be read by NumPy",
        ),
    ],
)
def test_arrays_that_no_counting_leaves_get_one_line_and_exit_code_2(change, words, counted):
    assert typed("generate", counted).exit_code == 0
    tensors = {k: t.clone() for k, t in read_tensors(counted / "model.safetensors").items()}
    change(tensors)
    write_tensors(counted / "model.safetensors", tensors)
    write_manifest(counted)
    for command in ("generate", "evaluate", "verify"):
        done = typed(command, counted)
        assert done.exit_code == 2, done.output
        [line] = done.output.splitlines()
        assert words in line


@pytest.mark.parametrize("harm", [nested_json, a_tokenizer_that_aborts])
def test_a_process_of_its_own_lives_to_say_so(harm, run):
    harm(run)
    command = [sys.executable, "-m", "regard", "generate", str(run), "the cat"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
