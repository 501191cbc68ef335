import re
import subprocess
import sys
from pathlib import Path

import pytest

from regard.lectures import NAMES

PAGE = (Path(__file__).parents[2] / "docs" / "lectures.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))


def shown(section):
    """The lines of the page's ```text blocks."""
    blocks = re.findall(r"```text\n(.*?)```", section, re.DOTALL)
    return "".join(blocks).splitlines()


def test_every_lecture_has_its_section_in_order():
    assert tuple(SECTIONS) == NAMES


def test_what_the_page_shows_is_what_the_lecture_prints(printed):
    for name in NAMES:
        lines = shown(SECTIONS[name])
        assert lines, name
        for line in lines if name != "any-b" else ():  # which takes a minute, see below
            assert " ".join(line.split()) in printed(name)


def test_the_example_of_the_page_prints_what_the_page_says():
    code, expected = re.search(r"```python\n(.*?)```\n+```text\n(.*?)```", PAGE, re.DOTALL).groups()
    run = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", code], capture_output=True, encoding="utf-8"
    )
    assert (run.stdout, run.stderr) == (expected, "")


@pytest.mark.slow
def test_the_table_of_the_page_is_the_one_that_any_b_prints(whole_any_b):
    told = " ".join(whole_any_b.text().split())
    for line in shown(SECTIONS["any-b"]):
        assert " ".join(line.split()) in told
