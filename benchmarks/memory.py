"""The most memory a piece of work takes beyond what was there before, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path


def peak_megabytes(module: str, case: str) -> float:
    """Run `python -m module --memory case`, which must print what `measured` gives."""
    command = [sys.executable, "-m", module, "--memory", case]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def measured(work: Callable[[], object]) -> float:
    """Megabytes at the highest point of `work` above those before it (Linux)."""
    # Writing 5 sets the kernel's high-water mark back to what is in use now.
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    work()
    return (_status("VmHWM") - before) / 1024


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    raise ValueError(f"/proc/self/status has no {name}")
