"""Paths of pictures: an ending that is known, a folder that is there."""

from pathlib import Path

from regard.atomic import write_atomically


def check_ending(path: Path, known: tuple[str, ...]) -> str:
    """The ending of a path, in small letters; a ValueError if it is not one of the known."""
    ending = path.suffix.lower()
    if ending not in known:
        raise ValueError(f"path ({str(path)!r}) must end in one of {', '.join(known)}")
    return ending


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; a missing folder is a ValueError that names it."""
    if not path.parent.is_dir():
        raise ValueError(f"path ({str(path)!r}): there is no folder {str(path.parent)!r}")
    if path.is_dir():
        raise ValueError(f"path ({str(path)!r}) is a folder, and a file was to be written")
    write_atomically(path, content)
