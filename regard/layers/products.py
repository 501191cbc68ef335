"""Matrix products by the library that is faster here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch

CPUINFO = Path("/proc/cpuinfo")


@contextmanager
def fastest_products() -> Iterator[None]:
    """Within the `with`, oneDNN does float32 products on an AMD CPU with AVX-512.

    torch asks MKL, which takes AVX2 on a CPU that is not Intel's: 116 against 265 GFLOP/s on one
    core of a Zen 5. "medium" is torch's word for handing products to oneDNN. It allows bfloat16
    inside them, for which only a CPU with AMX has an instruction; here they stay float32.
    """
    before = torch.get_float32_matmul_precision()
    if onednn_is_faster():
        torch.set_float32_matmul_precision("medium")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@cache
def onednn_is_faster() -> bool:
    """Whether MKL takes AVX2 where there is AVX-512, and oneDNN would not round to bfloat16."""
    amd = CPUINFO.is_file() and "AuthenticAMD" in CPUINFO.read_text()
    wide = torch.backends.cpu.get_cpu_capability() == "AVX512"
    return amd and wide and not torch.cpu._is_amx_tile_supported()
