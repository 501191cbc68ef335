"""`regard demo`, as somebody new would run it."""

import re

from click.testing import CliRunner

from regard.cli import main


def test_the_demo_trains_a_translator_that_is_right_and_shows_where_it_looks(tmp_path):
    page, run = tmp_path / "look.html", tmp_path / "run"
    words = ["demo", "--out", str(page), "--run", str(run)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    right = re.search(r"unseen numbers: ([\d.]+)%", done.output)
    assert right and float(right[1]) >= 99.0
    assert "decoder.attention" in done.output
    assert "<script" in page.read_text(encoding="utf-8")
    again = CliRunner().invoke(main, words)
    assert again.exit_code == 0
    assert "is trained already" in again.output
