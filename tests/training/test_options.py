"""What a recipe may switch on, and what it must not change."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from click.testing import CliRunner

from regard.checkpoints.reading import read_tensors
from regard.cli import main
from regard.looking import Looks
from regard.running.training import save_probes
from regard.training.train import train

PLAIN = ["model.dropout=0.0"]


def weights(recipe, folder, *settings):
    train(str(recipe), folder, [*PLAIN, *settings])
    return read_tensors(folder / "model.safetensors")


def test_recomputed_blocks_give_the_same_gradients(written, tmp_path):
    recipe = written("transformer")
    kept = weights(recipe, tmp_path / "kept")
    again = weights(recipe, tmp_path / "again", "training.checkpointing=true")
    for name, weight in kept.items():
        torch.testing.assert_close(again[name], weight)


def test_bf16_learns_about_the_same(written, tmp_path):
    losses = []
    for precision in ("fp32", "bf16"):
        folder = tmp_path / precision
        weights(written("transformer"), folder, f'training.precision="{precision}"')
        lines = [json.loads(line) for line in (folder / "record.jsonl").read_text().splitlines()]
        losses.append([line["loss"] for line in lines if line["event"] == "valid"][-1])
    assert losses[1] == pytest.approx(losses[0], abs=0.1)


def losses(folder, event):
    lines = [json.loads(line) for line in (folder / "record.jsonl").read_text().splitlines()]
    return {line["step"]: line["loss"] for line in lines if line["event"] == event}


@pytest.mark.slow
@pytest.mark.parametrize("model", ["lstm", "transformer"])
def test_a_compiled_model_learns_the_same(model, written, tmp_path):
    settings = ["training.steps=4", "training.log_every=1", "training.evaluate_every=4"]
    recipe = written(model)
    weights(recipe, tmp_path / "plain", *settings)
    weights(recipe, tmp_path / "compiled", *settings, "training.compile=true")
    plain, compiled = (losses(tmp_path / name, "train") for name in ("plain", "compiled"))
    assert len(plain) == 4
    assert compiled == pytest.approx(plain, abs=1e-4)


def test_without_a_compiler_one_line_says_so(written, tmp_path):
    words = ["train", str(written("transformer")), "--out", str(tmp_path / "run")]
    done = subprocess.run(
        [sys.executable, "-m", "regard", *words, "--set", "training.compile=true"],
        env={**os.environ, "CXX": "no-compiler", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "c")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    _header, line = done.stderr.splitlines()
    assert line.startswith("regard: training.compile: torch cannot compile here: ")
    assert "C++ compiler" in line
    assert line.endswith("--set training.compile=false trains without")


def test_tensorboard_shows_the_losses_of_the_record(written, tmp_path):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    train(str(written("lstm")), tmp_path / "run", ["training.tensorboard=true"])
    board = events.EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    for event in ("train", "valid"):
        shown = {each.step: each.value for each in board.Scalars(f"{event}/loss")}
        assert shown == pytest.approx(losses(tmp_path / "run", event), abs=1e-6)


def test_a_board_is_told_the_losses_of_the_record(written, tmp_path, monkeypatch):
    shown = {}

    class Writer:
        def __init__(self, folder):
            assert folder == str(tmp_path / "run" / "tensorboard")

        def add_scalar(self, name, value, step):
            shown.setdefault(name, {})[step] = value

        def flush(self):
            pass

    board = SimpleNamespace(SummaryWriter=Writer)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", board)
    train(str(written("lstm")), tmp_path / "run", ["training.tensorboard=true"])
    assert shown["train/loss"] == losses(tmp_path / "run", "train")
    assert shown["valid/loss"] == losses(tmp_path / "run", "valid")


def test_without_tensorboard_one_line_says_how_to_get_it(written, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    words = ["train", str(written("lstm")), "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(main, [*words, "--set", "training.tensorboard=true"])
    assert done.exit_code == 2
    (line,) = done.output.splitlines()
    assert "TensorBoard is not installed: pip install tensorboard" in line


def test_a_moving_average_with_no_memory_is_the_last_step(written, tmp_path):
    settings = ["training.restore_best=false"]
    last = weights(written("lstm"), tmp_path / "last", *settings)
    average = weights(written("lstm"), tmp_path / "average", *settings, "training.ema=1e-9")
    for name, weight in last.items():
        torch.testing.assert_close(average[name], weight, rtol=1e-5, atol=1e-7)


def test_a_run_that_gains_nothing_stops_early(written, tmp_path):
    settings = ["training.rate=0.0", "training.patience=2", "training.steps=200"]
    train(str(written("lstm")), tmp_path / "run", settings)
    lines = (tmp_path / "run" / "record.jsonl").read_text().splitlines()
    last = json.loads(lines[-1])
    assert last["event"] == "end"
    assert last["step"] == 12  # the first evaluation, and two without gain, every 4 steps


def test_packed_documents_train(written, tmp_path):
    settings = ['training.feed="packed"']
    train(str(written("transformer")), tmp_path / "run", settings)
    assert (tmp_path / "run" / "manifest.json").is_file()


def test_probes_are_looked_at_at_each_evaluation_and_change_nothing(written, tmp_path):
    recipe = str(written("transformer"))
    train(recipe, tmp_path / "plain", PLAIN)
    settings = [*PLAIN, 'training.probes=["the cat sees"]']
    train(recipe, tmp_path / "probed", settings, probe=save_probes)
    saved = sorted((tmp_path / "probed" / "probes").glob("*.json"))
    assert [path.name for path in saved] == [f"step-{n:08d}-0.json" for n in (5, 10, 12)]
    assert Looks.load(saved[0]).paths == ("layers.0.attention", "layers.1.attention")
    plain, watched = (read_tensors(tmp_path / n / "model.safetensors") for n in ("plain", "probed"))
    assert all(torch.equal(plain[name], watched[name]) for name in plain)


def test_a_full_disk_leaves_the_checkpoint_before_it(written, tmp_path, monkeypatch):
    from regard.training import saving

    write, calls = saving.write_tensors, []

    def full(path, tensors):
        calls.append(path)
        if len(calls) > 10:
            raise OSError(28, "No space left on device", str(path))
        write(path, tensors)

    monkeypatch.setattr(saving, "write_tensors", full)
    with pytest.raises(OSError, match="No space left"):
        train(str(written("lstm")), tmp_path / "run")
    monkeypatch.undo()
    held = saving.newest_checkpoint(tmp_path / "run" / "checkpoints")
    assert held is not None and held[0].progress.step == 3
    train(str(written("lstm")), tmp_path / "run", resume=True)
    assert (tmp_path / "run" / "manifest.json").is_file()
