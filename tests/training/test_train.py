"""From a recipe to a run folder, stopped and resumed at will."""

import json
import math
import os
import signal

import pytest
import torch

from regard.checkpoints.reading import check_folder, read_tensors
from regard.running import load
from regard.training.loop import Training
from regard.training.train import train

PARTS = ("model.safetensors", "optimizer.safetensors", "extras.safetensors")


def record_of(folder):
    lines = (folder / "record.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in lines]


def last_checkpoint(folder):
    return sorted((folder / "checkpoints").glob("step-*"))[-1]


def same_run(one, other):
    assert record_of(one) == record_of(other)
    mine, theirs = last_checkpoint(one), last_checkpoint(other)
    assert mine.name == theirs.name
    for part in PARTS:
        a, b = read_tensors(mine / part), read_tensors(theirs / part)
        assert a.keys() == b.keys()
        assert all(torch.equal(a[name], b[name]) for name in a), part
    a, b = (read_tensors(run / "model.safetensors") for run in (one, other))
    assert all(torch.equal(a[name], b[name]) for name in a)


class BrokenOffError(Exception):
    """What a test stops a run with."""


@pytest.mark.parametrize("model", ["lstm", "transformer"])
@pytest.mark.parametrize("stopped", [1, 4, 7])
def test_a_run_that_broke_off_ends_like_one_that_did_not(
    model, stopped, written, tmp_path, monkeypatch
):
    recipe = str(written(model))
    train(recipe, tmp_path / "whole")
    step = Training.step

    def breaking(self):
        if self.progress.step == stopped and not resumed:
            raise BrokenOffError
        step(self)

    resumed = False
    monkeypatch.setattr(Training, "step", breaking)
    with pytest.raises(BrokenOffError):
        train(recipe, tmp_path / "broken")
    resumed = True
    train(recipe, tmp_path / "broken", resume=True)
    same_run(tmp_path / "whole", tmp_path / "broken")


@pytest.mark.parametrize("stopped", [3, 4, 5, 7, 8])
def test_epochs_that_end_within_a_step_are_evaluated_alike_after_a_break(
    stopped, written, tmp_path, monkeypatch
):
    # Seven batches an epoch, three a step.
    (tmp_path / "train.txt").write_text("a b c d e f g h i j " * 3 + "\n")
    path = written("lstm")
    head, _, _ = path.read_text().partition("[training]")
    training = (
        'feed = "columns"\nbatch = 1\nlength = 5\nepochs = 4\naccumulate = 3\nsave_every = 1\n'
    )
    path.write_text(f"{head}[training]\n{training}")
    train(str(path), tmp_path / "whole")
    steps = [line["step"] for line in record_of(tmp_path / "whole") if line["event"] == "valid"]
    assert steps == [3, 5, 7, 10]  # behind 7, 14, 21 and 28 batches
    step = Training.step

    def breaking(self):
        if self.progress.step == stopped and not resumed:
            raise BrokenOffError
        step(self)

    resumed = False
    monkeypatch.setattr(Training, "step", breaking)
    with pytest.raises(BrokenOffError):
        train(str(path), tmp_path / "broken")
    resumed = True
    train(str(path), tmp_path / "broken", resume=True)
    same_run(tmp_path / "whole", tmp_path / "broken")


@pytest.mark.parametrize("model", ["lstm", "transformer"])
def test_a_finished_run_is_whole_and_can_be_used(model, written, tmp_path):
    folder, ended = train(str(written(model)), tmp_path / "run")
    assert ended
    check_folder(folder)
    run = load(folder)
    answer = run.generate(["the cat"], method="sample", longest=5, seed=1)[0]
    assert answer.text.startswith("the cat")
    values = run.evaluate()
    assert values["perplexity"] == pytest.approx(math.exp(values["loss"]))


def test_learning_lowers_the_loss(written, tmp_path):
    seen = []

    def report(event, values):
        if event == "valid":
            seen.append(values["loss"])

    train(str(written("lstm")), tmp_path / "run", ["training.steps=60"], report=report)
    assert seen[-1] < seen[0] - 0.05


def test_the_first_loss_is_that_of_knowing_nothing(written, tmp_path):
    seen = {}

    def report(event, values):
        seen.setdefault(event, values)

    settings = ["training.log_every=1", "training.steps=1", "model.dropout=0.0"]
    train(str(written("transformer")), tmp_path / "run", settings, report=report)
    # 12 words, <unk> and </s>: a model that knows nothing finds each as likely as the others
    assert seen["train"]["loss"] == pytest.approx(math.log(14), abs=0.1)


def test_a_broken_loss_stops_the_run_and_keeps_the_last_checkpoint(written, tmp_path, monkeypatch):
    step = Training.step

    def poisoned(self):
        if self.progress.step == 5:
            with torch.no_grad():
                next(self.model.parameters()).fill_(math.nan)
        step(self)

    monkeypatch.setattr(Training, "step", poisoned)
    with pytest.raises(FloatingPointError, match=r"the loss is nan at step 6 \(epoch 0, batch 5\)"):
        train(str(written("lstm")), tmp_path / "run")
    held = read_tensors(last_checkpoint(tmp_path / "run") / "model.safetensors")
    assert all(torch.isfinite(tensor).all() for tensor in held.values())


def test_a_folder_with_something_in_it_is_not_written_over(written, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").write_text("mine")
    with pytest.raises(ValueError, match="is not empty; --resume"):
        train(str(written("lstm")), tmp_path / "run")


def test_what_failed_before_its_first_save_may_be_begun_again(written, tmp_path, monkeypatch):
    def failing(self):
        raise ValueError("no")

    recipe = str(written("lstm"))
    with monkeypatch.context() as broken:
        broken.setattr(Training, "step", failing)
        with pytest.raises(ValueError, match="no"):
            train(recipe, tmp_path / "run")
    assert (tmp_path / "run" / "recipe.toml").is_file()
    train(recipe, tmp_path / "run")
    assert (tmp_path / "run" / "manifest.json").is_file()
    with pytest.raises(ValueError, match="is not empty; --resume"):
        train(recipe, tmp_path / "run")


def test_resuming_with_another_recipe_is_refused(written, tmp_path):
    recipe = str(written("lstm"))
    train(recipe, tmp_path / "run")
    with pytest.raises(ValueError, match=r"training.rate is 0.5, and .* was begun with 0.01"):
        train(recipe, tmp_path / "run", ["training.rate=0.5"], resume=True)


def test_a_damaged_checkpoint_is_passed_over_and_told(written, tmp_path, monkeypatch):
    recipe = str(written("lstm"))
    train(recipe, tmp_path / "whole")
    step = Training.step

    def breaking(self):
        if self.progress.step == 6 and not resumed:
            raise BrokenOffError
        step(self)

    resumed = False
    monkeypatch.setattr(Training, "step", breaking)
    with pytest.raises(BrokenOffError):
        train(recipe, tmp_path / "run")
    resumed = True
    newest = last_checkpoint(tmp_path / "run") / "model.safetensors"
    newest.write_bytes(newest.read_bytes()[:-4])
    told = []
    train(recipe, tmp_path / "run", resume=True, report=lambda e, v: e == "note" and told.append(v))
    assert "model.safetensors is damaged" in told[0]["text"]
    same_run(tmp_path / "whole", tmp_path / "run")


def test_weights_of_the_last_checkpoints_are_averaged(written, tmp_path):
    settings = ["training.average=2", "training.restore_best=false", "training.save_every=6"]
    folder, _ = train(str(written("lstm")), tmp_path / "run", [*settings, "training.keep=2"])
    plain, _ = train(str(written("lstm")), tmp_path / "plain", [*settings[1:], "training.keep=2"])
    held = [
        read_tensors(place / "model.safetensors")
        for place in sorted((plain / "checkpoints").glob("step-*"))
    ]
    for name, weight in read_tensors(folder / "model.safetensors").items():
        torch.testing.assert_close(weight, (held[0][name] + held[1][name]) / 2)


def test_the_average_of_a_run_that_was_asked_to_stop_is_that_of_one_that_was_not(written, tmp_path):
    settings = ["training.average=2", "training.keep=2", "training.save_every=3"]
    settings += ["training.restore_best=false", "training.steps=6"]
    recipe = str(written("lstm"))
    train(recipe, tmp_path / "whole", settings)

    def stop(event, values):
        if event == "step" and values["step"] == 4:  # between two times of saving
            os.kill(os.getpid(), signal.SIGTERM)

    _, ended = train(recipe, tmp_path / "run", settings, report=stop)
    assert not ended
    train(recipe, tmp_path / "run", settings, resume=True)
    same_run(tmp_path / "whole", tmp_path / "run")


def test_a_tokenizer_too_long_to_be_read_again_is_refused_before_training(
    written, tmp_path, monkeypatch
):
    monkeypatch.setattr("regard.tasks.resources.MAX_TEXT_BYTES", 100)
    with pytest.raises(ValueError, match=r"tokenizer\.json has [\d,]+ bytes, and regard reads up"):
        train(str(written("lstm")), tmp_path / "run")
    assert not (tmp_path / "run" / "checkpoints").exists()
