import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "graph.md"
EXAMPLE = re.compile(r"```python\n(.*?)```\n+```text\n(.*?)```", re.DOTALL)
EXAMPLES = EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("code,printed", EXAMPLES, ids=range(len(EXAMPLES)))
def test_the_examples_of_the_page_print_what_the_page_says(code, printed, tmp_path):
    run = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", code],
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,
    )
    assert run.stderr == ""
    assert run.stdout == printed


def test_the_page_has_examples():
    assert len(EXAMPLES) >= 2
