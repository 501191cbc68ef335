"""Threads that wait hand over their core: what the runtime itself says it was told."""

import os
import re
import subprocess
import sys

import pytest

from regard.openmp import spin_briefly

WAITING = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME")
BARE = [sys.executable]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
COMMAND = ["-m", "regard", "evaluate", "no-such-run"]


def spins(*words: str, **said: str) -> list[str]:
    """The GOMP_SPINCOUNT of every OpenMP runtime that was loaded, in its own words."""
    environment = {k: v for k, v in os.environ.items() if k not in WAITING}
    done = subprocess.run(
        [*words], env={**environment, "OMP_DISPLAY_ENV": "verbose", **said}, capture_output=True
    )
    return re.findall(r"GOMP_SPINCOUNT = '(\d+)'", done.stderr.decode())


default = pytest.fixture(scope="module")(lambda: spins(*BARE, "-c", "import torch"))


def test_a_command_has_told_the_runtime_before_torch_loads_it(default):
    if not default:
        pytest.skip("torch's OpenMP runtime does not tell its settings here")
    assert spins(*BARE, *COMMAND) == ["1600"] != default


def test_every_worker_of_torchrun_has(default):
    if not default:
        pytest.skip("torch's OpenMP runtime does not tell its settings here")
    assert spins(*TORCHRUN, *COMMAND).count("1600") == 2


def test_whoever_imports_regard_as_a_library_keeps_their_own(default):
    assert spins(*BARE, "-c", "import regard; regard.watch") == default


def test_the_benchmarks_have(default):
    if not default:
        pytest.skip("torch's OpenMP runtime does not tell its settings here")
    assert spins(*BARE, "-c", "import benchmarks.racing, torch") == ["1600"]


@pytest.mark.parametrize("name", WAITING)
def test_what_the_user_said_about_waiting_stands(name):
    environment = {name: "7"}
    spin_briefly(environment)
    assert environment == {name: "7"}
