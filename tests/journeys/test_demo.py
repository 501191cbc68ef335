"""`regard demo`, as somebody new would run it."""

from click.testing import CliRunner

from regard.cli import main


def test_the_demo_trains_looks_and_shows_the_look_to_be_a_cause(tmp_path):
    page = tmp_path / "look.html"
    done = CliRunner().invoke(main, ["demo", "--out", str(page)])
    assert done.exit_code == 0, done.output
    assert "regard → drager" in done.output
    assert "unseen words: 100.0%" in done.output
    assert "falls to" in done.output
    assert "<script" in page.read_text(encoding="utf-8")
