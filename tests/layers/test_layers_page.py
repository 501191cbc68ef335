import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "layers.md").read_text(encoding="utf-8")


def blocks(language):
    return "".join(re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL))


def test_the_examples_of_the_page_run_from_top_to_bottom_and_print_what_it_says(tmp_path):
    run = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", blocks("python")],
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,
    )
    assert run.stderr == ""
    assert run.stdout == blocks("text")
    assert run.stdout
