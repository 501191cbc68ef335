"""What the README and the page on attention show is run, block after block."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["README.md", "docs/attention.md"])
def test_the_python_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.S)
    assert blocks
    (tmp_path / "page.py").write_text("\n".join(blocks), encoding="utf-8")
    runpy.run_path(str(tmp_path / "page.py"))
