"""Memory that was freed is kept for the next step."""

from __future__ import annotations

import ctypes
import sys

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # mallopt's numbers for its settings, from malloc.h


def keep_freed_memory() -> bool:
    """Ask the C library to keep what is freed; True if it does.

    A training step frees and asks for the same large blocks over and over. glibc gives them back to
    the system each time and gets them again page by page, each page zeroed first: 5 to 20 percent
    of the step of a small model. In exchange the process never shrinks.
    Other C libraries have no such setting.
    """
    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallopt"):
        return False
    settings = ((MMAP_THRESHOLD, 1 << 30), (TRIM_THRESHOLD, (1 << 31) - 1))
    return all([library.mallopt(setting, value) == 1 for setting, value in settings])
