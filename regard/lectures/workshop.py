"""Quiet conditions for the lectures that draw random numbers or train something small."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def workshop(seed: int) -> Iterator[None]:
    """The same random numbers at every visit, on one thread; the caller's own go on undisturbed.

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
