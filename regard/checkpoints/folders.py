"""Folders that are either whole or not there.

A folder is built under a hidden name beside its place, every file is flushed to disk, the
manifest with the SHA-256 of each comes last, and one rename puts it where it belongs. A crash at
any moment leaves the folder that was there before. Reading checks the manifest, since neither
JSON nor safetensors notices a flipped bit.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

MANIFEST = "manifest.json"
VERSION = 1


@contextmanager
def new_folder(place: Path) -> Iterator[Path]:
    """A folder to fill; at the end of the `with` it stands at `place`, whole, or nothing
    changed."""
    place.parent.mkdir(parents=True, exist_ok=True)
    hidden = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        yield hidden
        write_manifest(hidden)
        if place.exists():
            # A rename cannot replace a folder that has something in it.
            old = Path(tempfile.mkdtemp(prefix=f".{place.name}-old-", dir=place.parent))
            place.replace(old / "was")
            hidden.replace(place)
            shutil.rmtree(old)
        else:
            hidden.replace(place)
        flush(place.parent)
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise


def sweep(parent: Path) -> None:
    """Remove what an earlier crash left half built."""
    if parent.is_dir():
        for left in parent.glob(".*-*"):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)


def write_file(path: Path, content: bytes) -> None:
    """Replace a file in one go."""
    hidden = path.with_name(f".{path.name}.new")
    try:
        with hidden.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        hidden.replace(path)
        flush(path.parent)
    except BaseException:
        hidden.unlink(missing_ok=True)
        raise


def write_json(path: Path, content: Any) -> None:
    write_file(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """A safetensors file; tensors that share memory are written out separately."""
    apart = {name: t.detach().cpu().contiguous().clone() for name, t in tensors.items()}
    try:
        save_file(apart, path)
    except SafetensorError as error:  # a full disk, in the words of another language
        raise OSError(f"{path} cannot be written: {error}") from None
    flush(path)


def write_manifest(folder: Path) -> None:
    """Name, size and SHA-256 of each file of a folder, written last."""
    files = {}
    for path in sorted(p for p in folder.iterdir() if p.is_file() and p.name != MANIFEST):
        flush(path)
        files[path.name] = {"bytes": path.stat().st_size, "sha256": digest(path)}
    write_json(folder / MANIFEST, {"version": VERSION, "files": files})
    flush(folder)


def check_folder(folder: Path) -> None:
    """Raise a ValueError unless every file of the manifest is there as it was written."""
    for name, entry in read_manifest(folder).items():
        path = folder / name
        if not path.is_file():
            raise ValueError(f"{folder} is incomplete: {name} is missing")
        if entry != {"bytes": path.stat().st_size, "sha256": digest(path)}:
            raise ValueError(f"{path} is damaged: its content is not what was saved")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Size and SHA-256 of each file that a folder was written with."""
    manifest = read_json(folder / MANIFEST)
    version = manifest.get("version") if isinstance(manifest, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise ValueError(
            f"{folder} was written by a newer regard (format {version}, this one reads up to "
            f"{VERSION}); upgrade regard to use it"
        )
    if version != VERSION or not isinstance(manifest.get("files"), dict):
        raise ValueError(f"{folder / MANIFEST} is not a manifest of regard")
    return manifest["files"]


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path.parent} is incomplete: {path.name} is missing") from None
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise ValueError(f"{path} is damaged: it is not JSON") from None


def read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except FileNotFoundError:
        raise ValueError(f"{path.parent} is incomplete: {path.name} is missing") from None
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def flush(path: Path) -> None:
    """Have the operating system put a file or folder on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
