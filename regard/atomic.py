"""Write files that are whole or not there, whatever happens meanwhile. Imports nothing of ours.

A file is written under a hidden name beside its place and flushed to disk; one rename puts it where
it belongs, and the flush of its folder makes the new name last. Whoever opens the path meanwhile,
or after a crash, finds the old file or the new one.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HIDDEN_NAME = re.compile(r"\.(?P<name>.+)-[0-9a-f]{8}\.part")


def hidden_sibling(path: Path) -> Path:
    """A name nobody can foresee, so that no link waits there; it tells the place it belongs to."""
    return path.with_name(f".{path.name}-{secrets.token_hex(4)}.part")


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file in one step: it has the new content, or is as it was."""
    with replacing(path) as hidden, hidden.open("xb") as file:
        file.write(content)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Where to write what is to stand at `path`; it is moved there at the end of the `with`."""
    hidden = hidden_sibling(path)
    try:
        yield hidden
        flush(hidden)
        hidden.replace(path)
        flush(path.parent)
    except BaseException:
        hidden.unlink(missing_ok=True)
        raise


def flush(path: Path) -> None:
    """Have the operating system put a file or folder on disk."""
    if os.name != "posix" and path.is_dir():  # other systems cannot open folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
