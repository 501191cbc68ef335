"""When the loop evaluates, what it ends with, and what stops it."""

import json
import math
import threading

import pytest
import torch

from regard.checkpoints.reading import read_tensors
from regard.running import load
from regard.running.training import save_probes
from regard.tasks.language_model import NextWord
from regard.training.loop import Training
from regard.training.placement import Placement
from regard.training.preparing import prepare
from regard.training.recipe import read_recipe
from regard.training.train import set_data_root, train, train_by_gradient


def lines_of(folder, event):
    lines = map(json.loads, (folder / "record.jsonl").read_text().splitlines())
    return [line for line in lines if line["event"] == event]


def evaluations(folder):
    return [line["step"] for line in lines_of(folder, "valid")]


def checkpoints(folder):
    return sorted(path.name for path in (folder / "checkpoints").glob("step-*"))


def same_weights(one, other):
    a, b = (read_tensors(path) for path in (one, other))
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


# Without validation data


def test_without_validation_data_a_run_ends_with_its_last_weights(written, tmp_path):
    recipe, settings = str(written("lstm", valid=False)), ["training.steps=60"]
    told = []
    train(recipe, tmp_path / "run", settings, report=lambda event, values: told.append(event))
    train(recipe, tmp_path / "last", [*settings, "training.restore_best=false"])
    assert same_weights(*(tmp_path / name / "model.safetensors" for name in ("run", "last")))
    assert "valid" not in told
    extras = read_tensors(tmp_path / "run" / "checkpoints" / "step-00000060" / "extras.safetensors")
    assert not any(name.startswith("best/") for name in extras)
    assert evaluations(tmp_path / "run") == []
    assert "best_step" not in lines_of(tmp_path / "run", "end")[0]


def test_without_validation_data_probes_are_looked_at_all_the_same(written, tmp_path):
    recipe = str(written("transformer", 'probes = ["the cat"]', valid=False))
    train(recipe, tmp_path / "run", probe=save_probes)
    saved = sorted(path.name for path in (tmp_path / "run" / "probes").glob("*.json"))
    assert saved == [f"step-{step:08d}-0.json" for step in (5, 10, 12)]


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("training.patience=3", r"training\.patience \(3\)"),
        ('training.schedule.kind="plateau"', r"training\.schedule\.kind \('plateau'\)"),
    ],
)
def test_what_waits_for_validation_losses_is_refused_without_them(
    setting, named, written, tmp_path
):
    wanted = rf"^{named} .* no validation data: .*data\.valid or data\.valid_share$"
    with pytest.raises(ValueError, match=wanted):
        train(str(written("lstm", valid=False)), tmp_path / "run", [setting])
    assert not (tmp_path / "run").exists()
    settings = [setting, "data.valid_share=0.1", "training.steps=4"]
    assert train(str(written("lstm", valid=False)), tmp_path / "run", settings)[1]


def test_counting_without_validation_data_records_no_validation(written, tmp_path):
    settings = ['model={name="ngram", order=2}']
    train(str(written("lstm", valid=False)), tmp_path / "run", settings)
    assert evaluations(tmp_path / "run") == []
    assert lines_of(tmp_path / "run", "end")[0]["step"] == 1


# At the end of an epoch


def five_batches(written, tmp_path, accumulate, epochs):
    """A recipe over 21 targets: five batches of five, the last one short."""
    (tmp_path / "train.txt").write_text("a b c d e f g h i j " * 2 + "\n")
    path = written("lstm")
    head, _, _ = path.read_text().partition("[training]")
    training = f"""[training]
feed = "columns"
batch = 1
length = 5
log_every = 1
epochs = {epochs}
accumulate = {accumulate}
"""
    path.write_text(head + training)
    return str(path)


@pytest.mark.parametrize(
    ("accumulate", "epochs", "steps"),
    [
        (1, 2, [5, 10]),
        (2, 4, [3, 5, 8, 10]),  # after 6, 10, 16 and 20 batches
        (3, 3, [2, 4, 5]),  # after 6, 12 and 15
        (4, 2, [2, 3]),  # after 8 and 12: the last step has two batches of a third epoch
        (5, 2, [1, 2]),
        (7, 3, [1, 2, 3]),
        (12, 4, [1, 2]),  # two epochs end within each step
    ],
)
def test_each_epoch_is_evaluated_at_the_first_step_behind_its_end(
    accumulate, epochs, steps, written, tmp_path
):
    train(five_batches(written, tmp_path, accumulate, epochs), tmp_path / "run")
    assert evaluations(tmp_path / "run") == steps


def test_a_new_epoch_within_a_step_begins_with_nothing_carried(written, tmp_path, monkeypatch):
    handed, forward = [], NextWord.forward

    def listening(self, batch, state=None):
        if self.training:
            handed.append(state is not None)
        return forward(self, batch, state)

    monkeypatch.setattr(NextWord, "forward", listening)
    train(five_batches(written, tmp_path, 2, 2), tmp_path / "run")
    assert handed == [False, True, True, True, True] * 2


# Numbers that are none


@pytest.fixture
def breaking(monkeypatch):
    """Has one gradient overflow at a step."""

    def break_at(broken):
        step = Training.step

        def overflowing(self):
            first = next(self.model.parameters())
            hook = None
            if self.progress.step == broken - 1:
                hook = first.register_hook(lambda gradient: gradient + math.inf)
            try:
                step(self)
            finally:
                if hook is not None:
                    hook.remove()

        monkeypatch.setattr(Training, "step", overflowing)

    return break_at


@pytest.mark.parametrize("clip", ["", "clip = 1.0\n"])
def test_infinite_gradients_are_never_applied(clip, written, tmp_path, breaking):
    path = written("lstm")
    path.write_text(path.read_text().replace("clip = 1.0\n", clip))
    breaking(6)
    wanted = (
        r"the norm of the gradients is inf at step 6 \(epoch 0, batch 5\); "
        r"the newest checkpoint is step-00000005"
    )
    with pytest.raises(FloatingPointError, match=wanted):
        train(str(path), tmp_path / "run")
    assert checkpoints(tmp_path / "run")[-1] == "step-00000005"


def test_a_checkpoint_is_not_claimed_where_none_was_saved(written, tmp_path, breaking):
    breaking(1)
    with pytest.raises(FloatingPointError, match=r"at step 1 .*; no checkpoint was saved yet"):
        train(str(written("lstm")), tmp_path / "run")
    assert checkpoints(tmp_path / "run") == []


@pytest.mark.parametrize(
    ("accumulate", "broken", "named"),
    [
        (2, 2, r"epoch 0, batches 2 to 3"),
        (2, 3, r"epoch 0, batch 4; epoch 1, batch 0"),
        (7, 2, r"epoch 1, batches 2 to 4; epoch 2, batches 0 to 3"),
    ],
)
def test_all_batches_of_a_broken_step_are_named(
    accumulate, broken, named, written, tmp_path, breaking
):
    recipe = five_batches(written, tmp_path, accumulate, epochs=4)
    breaking(broken)
    with pytest.raises(FloatingPointError, match=rf"at step {broken} \({named}\)"):
        train(recipe, tmp_path / "run")


def test_an_infinite_loss_stops_the_run_even_if_its_gradients_are_finite(
    written, tmp_path, monkeypatch
):
    forward = NextWord.forward

    def lost(self, batch, state=None):
        outcome = forward(self, batch, state)
        return outcome._replace(parts={"loss": outcome.parts["loss"] + math.inf})

    monkeypatch.setattr(NextWord, "forward", lost)
    with pytest.raises(FloatingPointError, match=r"the loss is inf at step 1 \(epoch 0, batch 0\)"):
        train(str(written("lstm")), tmp_path / "run")


def test_weights_that_are_no_numbers_are_not_saved(written, tmp_path, monkeypatch):
    step = Training.step

    def overflowing(self):
        step(self)
        if self.progress.step == 3:
            with torch.no_grad():
                self.model.output.bias[0] = math.inf

    monkeypatch.setattr(Training, "step", overflowing)
    wanted = r"output\.bias is not finite after step 3; the newest checkpoint is step-00000002"
    with pytest.raises(FloatingPointError, match=wanted):
        train(str(written("lstm")), tmp_path / "run")
    assert checkpoints(tmp_path / "run")[-1] == "step-00000002"


# Averages


def test_a_moving_average_leaves_whole_numbers_as_they_are(written, tmp_path):
    recipe = read_recipe(str(written("lstm")), ["training.ema=0.5", "training.steps=3"])
    work = prepare(set_data_root(recipe, tmp_path))
    for name, value in (("steps", 0), ("flag", True), ("doubled", 2.0)):
        work.model.register_buffer(name, torch.tensor(value))
    features = work.model.features

    def counting(batch, state=None):
        if work.model.training:
            work.model.steps += 1
            work.model.doubled *= 2
        return features(batch, state)

    work.model.features = counting
    (tmp_path / "run").mkdir()
    assert train_by_gradient(
        work, tmp_path / "run", Placement.from_environment(), False, lambda *_: None, None
    )
    held = read_tensors(tmp_path / "run" / "model.safetensors")
    assert held["steps"] == 3
    assert held["flag"]
    assert held["doubled"] == 0.25 * 4 + 0.25 * 8 + 0.5 * 16


def test_it_is_the_moving_average_that_is_scored_and_kept(written, tmp_path):
    settings = ["training.ema=0.9", "training.rate=0.05", "training.steps=12"]
    folder, _ = train(str(written("lstm")), tmp_path / "run", settings)
    best = lines_of(folder, "end")[0]["best_step"]
    (seen,) = [line for line in lines_of(folder, "valid") if line["step"] == best]
    assert load(folder).evaluate()["loss"] == pytest.approx(seen["loss"], rel=1e-6)
    raw, _ = train(str(written("lstm")), tmp_path / "raw", settings[1:])
    losses = [[line["loss"] for line in lines_of(f, "valid")] for f in (folder, raw)]
    assert losses[0] != losses[1]
    train_losses = [[line["loss"] for line in lines_of(f, "train")] for f in (folder, raw)]
    assert train_losses[0] == train_losses[1]  # and training goes on from the weights as they were


# Elsewhere than in the main thread


def test_a_run_in_another_thread_trains_without_listening_to_signals(written, tmp_path):
    ended = []
    thread = threading.Thread(
        target=lambda: ended.append(train(str(written("lstm")), tmp_path / "run")[1])
    )
    thread.start()
    thread.join()
    assert ended == [True]
