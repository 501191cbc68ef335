"""Checkpoints: the newest that is whole is found, and one that is not gets a line."""

import json
import os
import shutil

import pytest
import torch
from click.testing import CliRunner

from regard.checkpoints import memory
from regard.checkpoints.folders import write_manifest, write_tensors
from regard.checkpoints.reading import read_tensors
from regard.cli import main
from regard.training.preparing import count_training_bytes
from regard.training.recipe import read_recipe
from regard.training.saving import (
    Checkpoint,
    Progress,
    average_weights,
    newest_checkpoint,
    save_checkpoint,
)
from regard.training.train import train


def saved(folder, step, keep=2, **progress):
    tensors = {"w": torch.full((3,), float(step))}
    checkpoint = Checkpoint(Progress(step=step, **progress), tensors, {}, {})
    save_checkpoint(folder, checkpoint, keep)


def steps(folder):
    return sorted(path.name for path in folder.iterdir())


def test_as_many_as_asked_for_are_kept(tmp_path):
    for step in (1, 2, 3, 4):
        saved(tmp_path, step, keep=3)
    assert steps(tmp_path) == ["step-00000002", "step-00000003", "step-00000004"]
    saved(tmp_path, 5, keep=1)
    assert steps(tmp_path) == ["step-00000005"]


def test_what_is_saved_now_is_kept_whatever_claims_to_be_newer(tmp_path):
    for step in (3, 6):
        saved(tmp_path, step)
    damaged = tmp_path / "step-00000006" / "model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    checkpoint, complaints = newest_checkpoint(tmp_path)
    assert checkpoint.progress.step == 3
    assert len(complaints) == 1
    saved(tmp_path, 4, keep=1)
    assert steps(tmp_path) == ["step-00000004"]


def test_the_newest_has_the_highest_number_however_many_digits(tmp_path):
    for step in (99_999_999, 100_000_000):
        saved(tmp_path, step)
    assert newest_checkpoint(tmp_path)[0].progress.step == 100_000_000


def test_a_step_that_is_saved_again_is_replaced(tmp_path):
    saved(tmp_path, 3)
    saved(tmp_path, 3, finished=True)
    assert steps(tmp_path) == ["step-00000003"]
    assert newest_checkpoint(tmp_path)[0].progress.finished


def test_no_checkpoints_are_none(tmp_path):
    assert newest_checkpoint(tmp_path / "nothing") is None
    assert newest_checkpoint(tmp_path) is None


def test_weights_are_averaged_only_as_they_were_saved(tmp_path):
    for step in (1, 2, 4):
        saved(tmp_path, step, keep=3)
    assert average_weights(tmp_path, 2)["w"].tolist() == [3.0, 3.0, 3.0]
    write_tensors(tmp_path / "step-00000004" / "model.safetensors", {"w": torch.zeros(3)})
    with pytest.raises(ValueError, match=r"step-00000004/model\.safetensors is damaged"):
        average_weights(tmp_path, 2)


def test_what_was_saved_between_times_takes_nobody_s_place_and_has_no_share_in_the_mean(tmp_path):
    for step in (1, 2):
        saved(tmp_path, step)
    saved(tmp_path, 3, interim=True)
    assert steps(tmp_path) == ["step-00000001", "step-00000002", "step-00000003"]
    assert newest_checkpoint(tmp_path)[0].progress.step == 3
    saved(tmp_path, 4)
    assert steps(tmp_path) == ["step-00000002", "step-00000004"]
    saved(tmp_path, 5, interim=True)
    assert average_weights(tmp_path, 2)["w"].tolist() == [3.0, 3.0, 3.0]


PROGRESS = {"step": 3, "epoch": 0, "index": 1}


@pytest.mark.parametrize(
    "content",
    [
        *([], 3, "step", None, {"step": "many"}, {**PROGRESS, "colour": "blue"}),
        *({**PROGRESS, "index": -1}, {**PROGRESS, "history": 3}, {**PROGRESS, "record_length": -1}),
        {**PROGRESS, "step": [[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]},
    ],
)
def test_progress_that_cannot_be_is_refused_in_one_line(content, tmp_path):
    saved(tmp_path, 3)
    place = tmp_path / "step-00000003"
    (place / "progress.json").write_text(json.dumps(content))
    write_manifest(place)
    with pytest.raises(ValueError, match=r"progress\.json") as told:
        newest_checkpoint(tmp_path)
    assert "\n" not in str(told.value)


def test_progress_nested_too_deeply_is_refused_in_one_line(tmp_path):
    saved(tmp_path, 3)
    (tmp_path / "step-00000003" / "progress.json").write_text("[" * 100_000)
    write_manifest(tmp_path / "step-00000003")
    with pytest.raises(ValueError, match=r"progress\.json is nested too deeply"):
        newest_checkpoint(tmp_path)


def test_a_checkpoint_that_does_not_list_all_it_needs_is_refused(tmp_path):
    saved(tmp_path, 3)
    manifest = tmp_path / "step-00000003" / "manifest.json"
    content = json.loads(manifest.read_text())
    del content["files"]["extras.safetensors"]
    manifest.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"does not list extras\.safetensors, so it is not read"):
        newest_checkpoint(tmp_path)


def test_a_checkpoint_behind_a_link_is_refused(tmp_path):
    saved(tmp_path / "theirs", 3)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "step-00000003").symlink_to(tmp_path / "theirs" / "step-00000003")
    with pytest.raises(ValueError, match=r"step-00000003 is a link"):
        newest_checkpoint(tmp_path / "run")


# A run that was stopped, as somebody might hand it on


class StoppedError(Exception):
    """What a test stops a run with."""


@pytest.fixture
def stopped(written, tmp_path):
    """An LSTM that stopped behind its eighth step; it carries a state."""

    def stop(event, values):
        if event == "train" and values["step"] == 8:
            raise StoppedError

    recipe = str(written("lstm"))
    with pytest.raises(StoppedError):
        train(recipe, tmp_path / "run", report=stop)
    return recipe, tmp_path / "run"


def resumed(recipe, run, *more):
    return CliRunner().invoke(main, ["train", recipe, "--out", str(run), "--resume", *more])


def refused(done, words):
    assert done.exit_code == 2, done.output
    assert words in done.output.splitlines()[-1]
    assert "Traceback" not in done.output


def test_a_stopped_run_can_be_resumed(stopped):
    assert resumed(*stopped).exit_code == 0


@pytest.mark.parametrize("name", ["record.jsonl", "checkpoints", "recipe.toml", "probes"])
def test_nothing_is_written_through_a_link(name, stopped, tmp_path):
    recipe, run = stopped
    if (run / name).exists():
        (run / name).rename(tmp_path / "elsewhere")
    else:
        (tmp_path / "elsewhere").mkdir()
    (run / name).symlink_to(tmp_path / "elsewhere")
    refused(resumed(recipe, run), f"{name} is a link, and regard follows none")


def test_a_recipe_from_a_pipe_is_not_waited_for(stopped):
    recipe, run = stopped
    (run / "recipe.toml").unlink()
    os.mkfifo(run / "recipe.toml")
    refused(resumed(recipe, run), "there is no run in")


def test_a_nested_recipe_is_refused(stopped):
    recipe, run = stopped
    (run / "recipe.toml").write_text("a = " + "[" * 5_000)
    refused(resumed(recipe, run), "recipe.toml is nested too deeply")


def without(name):
    return lambda tensors: tensors.pop(next(key for key in tensors if key.startswith(name)))


def other(name, tensor):
    def change(tensors):
        tensors[next(key for key in tensors if key.startswith(name))] = tensor

    return change


@pytest.mark.parametrize(
    ("part", "change", "words"),
    [
        ("model", without("output.weight"), "output.weight is missing"),
        ("model", other("output.bias", torch.zeros(2)), "output.bias is float32 (2,) and should"),
        ("optimizer", other("output.bias", torch.zeros(2)), "which fits no weight"),
        ("optimizer", lambda t: t.update({"x/step": torch.zeros(())}), "x/step, which fits no"),
        ("optimizer", other("output.bias", torch.zeros(14).int()), "which fits no weight"),
        ("extras", without("best"), "best of extras.safetensors: the weights are not those"),
        ("extras", without("random"), "extras.safetensors holds no state of a generator"),
        ("extras", other("random", torch.zeros(7)), "holds no state of a generator"),
        ("extras", other("random", torch.zeros(5056).byte()), "holds no state of a generator"),
        ("extras", without("carried/0001"), "carries the state of another model"),
        ("extras", other("carried/0000", torch.zeros(2)), "carries the state of another model"),
        ("extras", other("carried/0000", torch.zeros(2, 7, 11)), "must be"),
    ],
)
def test_a_checkpoint_of_another_model_is_refused_in_one_line(part, change, words, stopped):
    recipe, run = stopped
    shutil.rmtree(run / "checkpoints" / "step-00000006")
    shutil.rmtree(run / "checkpoints" / "step-00000005", ignore_errors=True)
    place = run / "checkpoints" / "step-00000007"
    tensors = {k: t.clone() for k, t in read_tensors(place / f"{part}.safetensors").items()}
    change(tensors)
    write_tensors(place / f"{part}.safetensors", tensors)
    write_manifest(place)
    refused(resumed(recipe, run), words)


# What is too large for the memory


def test_a_model_larger_than_the_memory_is_refused_before_it_is_built(written, tmp_path):
    settings = ["model.hidden_size=400_000_000"]
    with pytest.raises(ValueError, match=r"^training rnn needs [\d,.]+ TB of memory, and .* is av"):
        train(str(written("lstm")), tmp_path / "run", settings)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("setting", ["model.layers=1000000000", "model.hidden_size=4000000000000"])
def test_a_model_that_nobody_could_build_is_refused_in_one_line(setting, written, tmp_path):
    with pytest.raises(ValueError, match=r"more than 50,000 parameters|no model has sizes") as told:
        train(str(written("lstm")), tmp_path / "run", [setting])
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("settings", "copies"),
    [
        (["training.restore_best=false"], 4),  # weights, gradients, and two of Adam's
        ([], 5),
        (["training.ema=0.9"], 6),
        (["training.optimizer=sgd"], 3),
        (["training.optimizer=sgd", "training.momentum=0.9"], 4),
    ],
)
def test_memory_is_counted_for_all_copies_of_the_weights(settings, copies, written, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    training = read_recipe(str(written("lstm")), settings).training
    model = torch.nn.Linear(3, 5)  # 15 weights and 5 biases, four bytes each
    assert count_training_bytes(model, training) == copies * 80


def test_what_is_needed_and_what_there_is_are_both_said(written, tmp_path, monkeypatch):
    (tmp_path / "meminfo").write_text("MemAvailable: 100 kB\n")
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    settings = ["model.hidden_size=64", "model.layers=1", "training.restore_best=false"]
    # 14 words: an LSTM of 4 · 64 · (64 + 64 + 2), an embedding and an output with a bias each word
    needed = 16 * (4 * 64 * 130 + 14 * 64 + 14 * 65)
    with pytest.raises(ValueError, match=rf"needs {needed:,} bytes of memory, and 102,400 bytes"):
        train(str(written("lstm")), tmp_path / "run", settings)


def test_counters_and_masks_have_no_mean(tmp_path):
    for step, seen in ((1, 10), (2, 13)):
        tensors = {"w": torch.tensor([float(step)]), "seen": torch.tensor(seen)}
        save_checkpoint(tmp_path, Checkpoint(Progress(step=step), tensors, {}, {}), keep=2)
    mean = average_weights(tmp_path, 2)
    assert (mean["w"].tolist(), mean["seen"].item()) == ([1.5], 13)
