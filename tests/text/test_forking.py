import os
import subprocess
import sys

import pytest

FORK = """
import os
from regard.text import TextConfig, Tokenizer
made = Tokenizer.train(["a b c"] * 100, TextConfig(), ("unknown",))
list(made.encode_all(["a b c"] * 3000))
child = os.fork()
if child == 0:
    count = sum(len(encoded) for encoded in made.encode_all(["a b c"] * 3000))
    os._exit(0 if count == 9000 and os.environ["TOKENIZERS_PARALLELISM"] == WANTED else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert os.environ.get("TOKENIZERS_PARALLELISM") == AFTERWARDS
"""


def run(before: dict[str, str], wanted: str, afterwards: str | None) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "TOKENIZERS_PARALLELISM"}
    program = f"WANTED, AFTERWARDS = {wanted!r}, {afterwards!r}\n{FORK}"
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**environment, **before},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_encodes_alone_and_without_a_warning():
    assert run({}, "false", None) == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_what_the_user_decided_stays():
    assert run({"TOKENIZERS_PARALLELISM": "0"}, "0", "0") == ""
