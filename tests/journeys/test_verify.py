"""`regard verify`: what it proves of a run, and that it finds out what is broken."""

import torch
from click.testing import CliRunner

from regard.cli import main
from regard.training import loop
from regard.training.train import train

RESUMED = "stopped and resumed = undisturbed"
NUMBERS = ["data.examples=300", "data.valid_examples=20", "training.steps=3"]


def verified(run, *words):
    done = CliRunner().invoke(main, ["verify", str(run), *words])
    return done.exit_code, done.output


def short(recipe, name, tmp_path):
    folder, _ = train(str(recipe(name)), tmp_path / "run", ["training.steps=3"])
    return folder


def test_a_resumed_lstm_with_carried_state_and_dropout_is_not_off_by_a_bit(recipe, tmp_path):
    code, output = verified(short(recipe, "lstm", tmp_path))
    assert code == 0
    assert f"{RESUMED} holds: largest difference 0.00e+00" in output


def test_a_resumed_transformer_is_not_off_by_a_bit(recipe, tmp_path):
    code, output = verified(short(recipe, "transformer", tmp_path))
    assert code == 0
    assert f"{RESUMED} holds: largest difference 0.00e+00" in output


def test_a_run_on_built_in_data_always_has_it_at_hand(tmp_path):
    folder, _ = train("numbers-de", tmp_path / "run", NUMBERS)
    code, output = verified(folder)
    assert code == 0
    assert f"{RESUMED} holds: largest difference 0.00e+00" in output


def test_a_run_without_validation_data_is_stopped_and_resumed_too(recipe, tmp_path, monkeypatch):
    path = recipe("lstm")
    path.write_text(path.read_text().replace('valid = "valid.txt"\n', ""))
    folder, _ = train(str(path), tmp_path / "run", ["training.steps=3"])
    code, output = verified(folder)
    assert code == 0
    assert f"{RESUMED} holds: largest difference 0.00e+00" in output
    monkeypatch.setattr(torch, "set_rng_state", lambda state: None)
    code, output = verified(folder)
    assert code == 1  # it was stopped, or there would have been nothing to forget


def test_a_proof_leaves_the_run_as_it_was(recipe, tmp_path):
    folder = short(recipe, "lstm", tmp_path)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    verified(folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_forgotten_random_state_is_found_out(recipe, tmp_path, monkeypatch):
    folder = short(recipe, "lstm", tmp_path)
    monkeypatch.setattr(torch, "set_rng_state", lambda state: None)
    code, output = verified(folder)
    assert code == 1
    assert f"{RESUMED} FAILS" in output


def test_a_forgotten_optimizer_is_found_out(recipe, tmp_path, monkeypatch):
    folder = short(recipe, "transformer", tmp_path)
    monkeypatch.setattr(loop, "load_optimizer_tensors", lambda optimizer, names, tensors: None)
    code, output = verified(folder)
    assert code == 1
    assert f"{RESUMED} FAILS" in output


def test_a_record_that_was_not_cut_back_is_found_out(recipe, tmp_path, monkeypatch):
    folder = short(recipe, "transformer", tmp_path)
    restore = loop.Training.restore

    def longer(self, checkpoint):
        restore(self, checkpoint)
        with (self.folder / "record.jsonl").open("a") as file:
            file.write('{"event": "valid", "loss": 1.0}\n')
        self.progress.record_length = (self.folder / "record.jsonl").stat().st_size

    monkeypatch.setattr(loop.Training, "restore", longer)
    code, output = verified(folder)
    assert code == 1
    assert f"{RESUMED} FAILS: largest difference inf" in output


def test_without_its_data_resuming_is_not_tried_and_nothing_fails(recipe, tmp_path):
    folder = short(recipe, "lstm", tmp_path)
    (tmp_path / "train.txt").unlink()
    code, output = verified(folder)
    assert code == 0
    assert "a batch of 3 = 3 batches of 1     holds" in output
    assert output.splitlines()[-1].startswith("resume: not tried, data file train.txt is missing")


def test_a_file_can_stand_in_for_the_data(recipe, tmp_path, monkeypatch):
    folder = short(recipe, "lstm", tmp_path)
    (tmp_path / "train.txt").rename(tmp_path / "moved.txt")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    code, output = verified(folder, "--data", "../moved.txt")
    assert code == 0
    assert f"{RESUMED} holds: largest difference 0.00e+00" in output
    code, output = verified(folder, "--data", "nothing.txt")
    assert code == 2
    assert "data file nothing.txt is missing" in output.splitlines()[-1]


def test_counting_takes_no_steps_that_could_be_resumed(recipe, tmp_path):
    settings = ['model={name="ngram", order=2}']
    folder, _ = train(str(recipe("lstm")), tmp_path / "run", settings)
    code, output = verified(folder)
    assert code == 0
    assert "resume: not tried, the model learns in one go, without steps" in output
