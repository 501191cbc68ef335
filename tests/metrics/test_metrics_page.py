"""What the page on metrics shows is run, and prints what it says."""

import re
import runpy
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/metrics.md"


def test_the_page_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    code = "\n".join(blocks)
    (tmp_path / "page.py").write_text(code, encoding="utf-8")
    runpy.run_path(str(tmp_path / "page.py"))
    said = [line.removeprefix("# ") for line in code.splitlines() if line.startswith("# ")]
    assert said
    assert capsys.readouterr().out.splitlines() == said
