"""How long torch's threads spin while they wait for each other.

OpenMP threads wait by turning in a circle, and torch's runtime turns for long: a second busy
process on the same cores then slows both of them 20 times and more. This file imports nothing of
ours, since the runtime reads its environment once, when torch is loaded.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping

SPINS = "1600"
"""Turns before a waiting thread gives its core away: enough for the quick hand-over inside a
training step, soon over when somebody else wants the core. docs/decisions/010 has the table."""

WAIT_VARIABLES = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME")


def spin_briefly(environment: MutableMapping[str, str] = os.environ) -> None:
    """Have waiting threads sleep soon, unless the environment says already how they wait.

    Call it before torch is imported, and in programs of your own only: whoever imports a library
    does not expect it to change their environment. Programs started from here inherit it.
    """
    if not any(name in environment for name in WAIT_VARIABLES):
        environment["GOMP_SPINCOUNT"] = SPINS
