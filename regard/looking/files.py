"""Files appear whole or not at all."""

import os
import secrets
from pathlib import Path


def ending(path: Path, known: tuple[str, ...]) -> str:
    """The ending of a path, if it is one of the known."""
    found = path.suffix.lower()
    if found not in known:
        raise ValueError(f"path ({str(path)!r}) must end in one of {', '.join(known)}")
    return found


def write_whole(path: Path, content: bytes) -> None:
    """Write beside the place, make sure it is on the disk, then move it there in one step.

    Whoever opens the path meanwhile, or after a crash, finds the old file or the new one.
    """
    if not path.parent.is_dir():
        raise ValueError(f"path ({str(path)!r}): there is no folder {str(path.parent)!r}")
    if path.is_dir():
        raise ValueError(f"path ({str(path)!r}) is a folder, and a file was to be written")
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    settle(path.parent)


def settle(folder: Path) -> None:
    """The new name is on the disk only once its folder is; some systems cannot open folders."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
