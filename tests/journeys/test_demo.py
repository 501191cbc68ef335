"""`regard demo`, as somebody new would run it."""

import re
import signal

from click.testing import CliRunner

from regard.cli import main
from regard.cli.progress import Progress


def test_the_demo_goes_on_after_ctrl_c_and_trains_a_translator_that_is_right(tmp_path, monkeypatch):
    page, run = tmp_path / "look.html", tmp_path / "run"
    words = ["demo", "--out", str(page), "--run", str(run)]
    with monkeypatch.context() as patch:
        patch.setattr(Progress, "move", interrupt_at(30))
        stopped = CliRunner().invoke(main, words)
    assert stopped.exit_code == 3, stopped.output
    assert "the same command goes on" in stopped.output
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    right = re.search(r"unseen numbers: ([\d.]+)%", done.output)
    assert "from step 30" in done.output
    assert right and float(right[1]) >= 99.0
    assert "decoder.attention" in done.output
    assert "<script" in page.read_text(encoding="utf-8")
    again = CliRunner().invoke(main, words)
    assert again.exit_code == 0
    assert "is trained already" in again.output


def interrupt_at(step):
    def move(self, values):
        if values["step"] == step:
            signal.raise_signal(signal.SIGINT)

    return move


def test_a_picture_that_cannot_be_made_is_refused_before_training(tmp_path):
    run = tmp_path / "run"
    done = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "x.gif"), "--run", str(run)])
    assert done.exit_code == 2
    assert ".gif" in done.output and len(done.output.splitlines()) == 1
    assert not run.exists()


def test_a_run_of_something_else_is_left_alone(tmp_path):
    run = tmp_path / "run"
    settings = ["--set", "training.steps=1", "--set", "data.examples=20", "--set", "name=mine"]
    done = CliRunner().invoke(main, ["train", "numbers-de", "--out", str(run), *settings])
    assert done.exit_code == 0, done.output
    (run / "manifest.json").unlink()
    done = CliRunner().invoke(main, ["demo", "--run", str(run), "--out", str(tmp_path / "x.svg")])
    assert done.exit_code == 2
    assert "holds another run" in done.output
