"""The memory that is needed, and the memory there is."""

from __future__ import annotations

from pathlib import Path

MEMINFO = Path("/proc/meminfo")
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")  # what a container may use at most


def check_memory(needed: int, what: str) -> None:
    """Refuse what needs more bytes than are available, before the first of them is asked for."""
    available = available_memory()
    if available is not None and needed > available:
        free = format_bytes(available)
        raise ValueError(f"{what} needs {format_bytes(needed)} of memory, and {free} is available")


def available_memory() -> int | None:
    """Bytes that can be had without swapping; None on systems that do not say."""
    try:
        lines = MEMINFO.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    kilobytes = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    if kilobytes is None:
        return None
    return min(1024 * int(kilobytes), container_limit() or 1024 * int(kilobytes))


def container_limit() -> int | None:
    """Bytes that this container may use, which the system's own count knows nothing of."""
    try:
        limit = CONTAINER_LIMIT.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(limit) if limit.isdecimal() else None  # "max" is none


def format_bytes(size: int) -> str:
    """1_500_000_000 → 1.5 GB"""
    for unit, bytes_each in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if size >= bytes_each:
            return f"{size / bytes_each:,.1f} {unit}"
    return f"{size:,} bytes"
