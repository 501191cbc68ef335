"""What is printed when a run is stopped can be typed as it stands."""

import re
import shlex
import signal

import pytest
from click.testing import CliRunner

from regard.cli import main
from regard.cli.progress import Progress


def typed(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def stopped(recipe, tmp_path, monkeypatch):
    """The output of a run of one's own text that was stopped by Ctrl-C."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "here" / "mine.txt").write_text("my cat sees my dog\n" * 40)
    settings = ["training.steps=30", "data.train=mine.txt", "model.hidden_size=12", "seed=3"]
    words = [word for setting in settings for word in ("--set", setting)]

    def move(self, values):
        if values["step"] == 7:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "move", move)
        done = typed("train", recipe("lstm"), "--out", "my run", *words)
    assert done.exit_code == 3, done.output
    return done.output


def test_the_printed_line_goes_on_with_every_setting(stopped):
    line = re.search(r"go on with: (.*)", stopped)[1]
    command, *words = shlex.split(line)
    assert command == "regard"
    done = typed(*words)
    assert done.exit_code == 0, done.output
    assert "from step 7" in done.output
    assert typed("generate", "my run", "my").exit_code == 0


def test_a_resume_that_differs_names_the_key(stopped):
    done = typed("train", "my run/recipe.toml", "--out", "my run", "--set", "seed=4", "--resume")
    assert done.exit_code == 2
    assert "seed is 4, and my run was begun with 3" in done.output


def test_a_run_begins_with_a_line_about_model_data_device_and_folder(stopped):
    head = stopped.splitlines()[0]
    assert re.match(r"rnn  [\d,]+ parameters  240 tokens in 4 columns  cpu  into my run", head)
