"""Writing folders that are either whole or not there.

A folder is built under a hidden name beside its place: every file is flushed to disk, and the
manifest with the SHA-256 of each comes last. One rename puts it where it belongs. If a folder
stands there already, it steps aside under a hidden name first, and goes only when the new one is
in place and on disk. A crash at any moment leaves a whole folder, in its place or hidden beside
it, and `recover` puts a hidden one back.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from regard.atomic import HIDDEN_NAME, flush, hidden_sibling, write_atomically
from regard.checkpoints.reading import MANIFEST, VERSION, check_folder, digest


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill; at the end of the `with` it stands at `path`, whole and with its manifest,
    or nothing changed."""
    with new_plain_folder(path) as hidden:
        yield hidden
        write_manifest(hidden)


@contextmanager
def new_plain_folder(path: Path) -> Iterator[Path]:
    """The same without a manifest, for folders that others read."""
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True)
        flush(path.parent.parent)
    hidden = hidden_sibling(path)
    try:
        hidden.mkdir()
        yield hidden
        for file in hidden.iterdir():
            flush(file)
        flush(hidden)
        move_into_place(hidden, path)
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise


def move_into_place(hidden: Path, path: Path) -> None:
    """Move a whole folder to its path; the one that stands there goes when this is on disk."""
    old = hidden_sibling(path)
    try:
        if path.exists():  # a rename cannot replace a folder that has something in it
            path.rename(old)
        hidden.rename(path)
    except BaseException:
        if old.exists():
            old.rename(path)
        raise
    flush(path.parent)
    if old.exists():
        shutil.rmtree(old, ignore_errors=True)


def remove_folder(path: Path) -> None:
    """Remove a folder so that it is there whole or not at all."""
    hidden = hidden_sibling(path)
    path.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)


def recover(parent: Path) -> None:
    """Clean up after a crash: put back what it left whole beside its empty place, and remove what
    it left half built."""
    for hidden in sorted(parent.glob(".*.part")):
        match = HIDDEN_NAME.fullmatch(hidden.name)
        # Of several processes that start together, each may find that another was faster.
        with suppress(FileNotFoundError):
            if match is None:
                continue
            if hidden.is_symlink() or not hidden.is_dir():
                hidden.unlink()
            elif not (parent / match["name"]).exists() and is_complete(hidden):
                hidden.rename(parent / match["name"])
                flush(parent)
            else:
                shutil.rmtree(hidden, ignore_errors=True)


def is_unfinished(path: Path) -> bool:
    """Whether a path has a hidden name, under which a crash may have left something."""
    return HIDDEN_NAME.fullmatch(path.name) is not None


def is_complete(path: Path) -> bool:
    """Whether a folder has a manifest, and every file in it is there as it was written."""
    try:
        check_folder(path)
    except ValueError:
        return False
    return True


def write_json(path: Path, content: Any) -> None:
    write_atomically(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None
) -> None:
    """A new safetensors file, not flushed yet; tensors that share memory are written separately."""
    separate = {name: t.detach().cpu().contiguous().clone() for name, t in tensors.items()}
    try:
        save_file(separate, path, metadata)
    except SafetensorError as error:  # a full disk, in the words of another language
        raise OSError(f"{path} cannot be written: {error}") from None


def write_manifest(folder: Path) -> None:
    """Name, size and SHA-256 of each file of a folder, written last."""
    files = {}
    for path in sorted(folder.iterdir()):
        if path.name == MANIFEST or path.name.startswith(".") or path.is_symlink():
            continue
        if path.is_file():
            flush(path)
            size = path.stat().st_size
            with path.open("rb") as file:
                files[path.name] = {"bytes": size, "sha256": digest(file, size)}
    flush(folder)
    write_json(folder / MANIFEST, {"version": VERSION, "files": files})
