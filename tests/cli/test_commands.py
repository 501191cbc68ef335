"""What a user types, and what comes back."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from regard.cli import main
from regard.lectures import NAMES

LECTURES = [
    *("aaba", "any-b", "trick-was-sick", "backprop", "soft-database", "sql", "apple", "positions"),
    *("lstm", "layer-norm", "alignment", "coreference", "rnn-memory", "residual"),
    *("teacher-forcing", "order"),
]


def typed(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, words)
    return done.exit_code, done.output


def test_help_lists_every_command_with_a_line():
    code, output = typed("--help")
    assert code == 0
    for name, command in main.commands.items():
        assert name in output
        assert command.get_short_help_str()
    assert "..." not in output.split("Commands:")[1]  # no line is cut short


def test_help_does_not_wait_for_torch():
    code = "import sys; sys.argv = ['regard', '--help']\n"
    code += "from regard.cli import main\n"
    code += "try: main()\nexcept SystemExit: pass\n"
    code += "assert 'torch' not in sys.modules, 'torch was imported'"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_list_of_lectures_does_not_wait_for_torch():
    code = "import sys; from click.testing import CliRunner; from regard.cli import main\n"
    code += "CliRunner().invoke(main, ['lecture'])\n"
    code += "assert 'torch' not in sys.modules, 'torch was imported'"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_sixteen_lectures_are_listed():
    code, output = typed("lecture")
    assert code == 0
    assert [line.split()[0] for line in output.splitlines()] == LECTURES == list(NAMES)


def test_aaba_is_told_in_fractions_and_with_the_real_e():
    code, output = typed("lecture", "aaba")
    assert code == 0
    assert "[1/6 1/6 1/2 1/6] → [1/2 1/2]" in output
    assert "[0.1749 0.1749 0.4754 0.1749] → [0.5246 0.4754]" in output


def test_trick_was_sick_ends_in_the_sentiment_1000():
    code, output = typed("lecture", "trick-was-sick")
    assert code == 0
    assert "sentiment 1000" in output


@pytest.mark.parametrize("name", [name for name in LECTURES if name != "any-b"])
def test_the_numbers_of_a_lecture_are_one_json_object(name):
    code, output = typed("lecture", name, "--json")
    assert code == 0
    assert isinstance(json.loads(output), dict)


@pytest.mark.parametrize("ending", ["html", "svg", "png", "pdf"])
def test_a_lecture_saves_its_picture(ending, tmp_path):
    path = tmp_path / f"aaba.{ending}"
    code, output = typed("lecture", "aaba", "--out", str(path))
    assert code == 0
    assert path.stat().st_size > 500
    assert str(path) in output


def test_an_unknown_lecture_is_answered_in_one_line_with_the_nearest_name():
    code, output = typed("lecture", "aabb")
    assert code == 2
    assert len(output.splitlines()) == 1
    assert "'aabb'" in output
    assert "'aaba'" in output


def test_an_unknown_ending_is_answered_in_one_line(tmp_path):
    code, output = typed("lecture", "aaba", "--out", str(tmp_path / "aaba.gif"))
    assert code == 2
    assert len(output.splitlines()) == 1  # before anything is played
    assert ".gif" in output
    assert not (tmp_path / "aaba.gif").exists()


def test_a_folder_that_is_not_there_is_named(tmp_path):
    code, output = typed("lecture", "aaba", "--out", str(tmp_path / "nowhere" / "aaba.svg"))
    assert code == 2
    assert "nowhere" in output.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tran"], "No such command 'tran'"),
        (["train"], "Missing argument 'RECIPE'"),
        (["train", "numbers-de", "--uot", "run"], "No such option"),
        (["generate", "run", "--longest", "many"], "'many' is not a valid integer"),
    ],
)
def test_words_that_make_no_command_are_answered_in_one_line(words, message):
    code, output = typed(*words)
    assert code == 2
    (line,) = output.splitlines()
    assert message in line
    assert line.endswith("--help")
