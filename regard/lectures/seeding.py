"""The same random numbers at every play, for lectures that draw some or train something small."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def fixed_seed(seed: int) -> Iterator[None]:
    """Seed torch and use one thread inside the `with`; restore generator and threads after it.

    The matrices of a lecture are tiny: threads waiting for each other would take longer than the
    work, and much longer on a busy machine.
    """
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
