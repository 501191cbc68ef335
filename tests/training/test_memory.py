"""Freed memory that is kept is not asked for again, page by page."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
import torch
from regard.training.memory import keep_freed_memory

if sys.argv[1] == "kept":
    assert keep_freed_memory()
size = 16 << 18  # floats: 16 MB


def step():
    logits = torch.ones(4 * size)
    slope = logits + 1
    return slope[:size] + logits[:size]


for _ in range(5):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(way: str) -> int:
    command = [sys.executable, "-c", FAULTS, way]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_a_block_freed_and_asked_for_again_costs_few_page_faults():
    assert 10 * faults("kept") < faults("as it is")
