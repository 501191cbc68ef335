"""Reading folders that anybody may have made.

What is read has a line in the folder's manifest. It goes by a plain name, so it lies in the folder;
it is a regular file, since a pipe may never end; it is as large as the manifest says, which is
looked at before its content; and it has the SHA-256 that was written down. No link is followed:
regard writes none, and one that stays inside the folder can be turned to lead out of it later.

A SHA-256 shows that nothing changed since the manifest was written, but not who wrote it. So
sizes, nesting and shapes are bounded all the same. Whatever is wrong is a ValueError of one line.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from safetensors import SafetensorError
from safetensors.torch import load, load_file
from torch import Tensor

from regard.checkpoints.memory import check_memory, format_bytes

MANIFEST = "manifest.json"
VERSION = 1
MAX_MANIFEST_BYTES = 1 << 20
MAX_TEXT_BYTES = 256 << 20  # a tokenizer of a million words has a tenth of it
MAX_DEPTH = 32  # lists and tables within each other; regard's own files have up to five
BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class ManifestEntry:
    """What a manifest says of a file."""

    size: int
    sha256: str


class Folder:
    """The files of a folder, as its manifest lists them; no other is handed out.

    files = Folder(Path("runs/shakespeare-char"))
    files.read("recipe.toml")  # its bytes, if they are those that were saved
    """

    def __init__(self, path: Path):
        self.path = path
        self.entries = read_manifest(path)
        self._checked: set[str] = set()

    def check(self) -> None:
        """Raise a ValueError unless every file that is listed is there as it was written."""
        for name in self.entries:  # a missing file is found before an hour of hashing
            with self._open(name):
                pass
        for name in self.entries:
            self._check(name)

    def read(self, name: str, max_bytes: int = MAX_TEXT_BYTES) -> bytes:
        """The bytes of a file."""
        with self._open(name) as (file, entry):
            check_size(entry.size, max_bytes, self.path / name)
            content = file.read(entry.size)
        if hashlib.sha256(content).hexdigest() != entry.sha256:
            raise self._damaged(name)
        self._checked.add(name)
        return content

    def read_json(self, name: str) -> Any:
        return parse_json(self.read(name), self.path / name)

    def tensors(self, name: str) -> dict[str, Tensor]:
        """The tensors of a safetensors file. Their numbers are read when they are used."""
        self._check(name)
        check_memory(self.entries[name].size, str(self.path / name))
        return read_tensors(self.path / name)

    def _check(self, name: str) -> None:
        if name in self._checked:
            return
        with self._open(name) as (file, entry):
            if digest(file, entry.size) != entry.sha256:
                raise self._damaged(name)
        self._checked.add(name)

    @contextmanager
    def _open(self, name: str) -> Iterator[tuple[BinaryIO, ManifestEntry]]:
        """A file that is listed, is a regular one and has the size it should have."""
        if name not in self.entries:
            raise ValueError(f"{self.path / MANIFEST} does not list {name}, so it is not read")
        entry, path = self.entries[name], self.path / name
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size != entry.size:
                raise self._damaged(name)
            yield file, entry

    def _damaged(self, name: str) -> ValueError:
        return ValueError(f"{self.path / name} is damaged: its content is not what was saved")


def check_folder(path: Path) -> None:
    """Raise a ValueError unless every file of the manifest is there as it was written."""
    Folder(path).check()


def read_manifest(folder: Path) -> dict[str, ManifestEntry]:
    """Size and SHA-256 of each file that a folder was written with."""
    path = folder / MANIFEST
    manifest = parse_json(read_regular(path, MAX_MANIFEST_BYTES), path)
    version = manifest.get("version") if isinstance(manifest, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise ValueError(
            f"{folder} was written by a newer regard (format {version}, this one reads up to "
            f"{VERSION}); upgrade regard to use it"
        )
    if version != VERSION or not isinstance(manifest.get("files"), dict):
        raise ValueError(f"{path} is not a manifest of regard")
    if not manifest["files"]:
        raise ValueError(f"{path} lists no files")
    return {name: _read_entry(name, entry, path) for name, entry in manifest["files"].items()}


def _read_entry(name: str, entry: Any, path: Path) -> ManifestEntry:
    if name in ("", "..") or not name.isprintable() or Path(name).name != name:
        raise ValueError(
            f"{path} lists {name[:80]!r}, which is not the name of a file in its folder"
        )
    size, sha256 = (entry.get("bytes"), entry.get("sha256")) if isinstance(entry, dict) else (0, 0)
    if type(size) is not int or size < 0 or not isinstance(sha256, str):
        raise ValueError(f"{path} does not say the bytes and the sha256 of {name[:80]}")
    return ManifestEntry(size, sha256)


def refuse_links(folder: Path) -> None:
    """Refuse a folder with a link in it: whoever writes there would write somewhere else."""
    for path in folder.iterdir():
        if path.is_symlink():
            raise ValueError(f"{path} is a link, and regard follows none inside a run folder")


def open_regular(path: Path) -> BinaryIO:
    """A file, open for reading; a link, a pipe, a device and a folder are refused."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        raise ValueError(f"{path.parent} is incomplete: {path.name} is missing") from None
    if stat.S_ISLNK(mode):
        raise ValueError(f"{path} is a link, and regard follows none inside a run folder")
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path} is not a regular file")
    return path.open("rb")


def read_regular(path: Path, max_bytes: int = MAX_TEXT_BYTES) -> bytes:
    """The bytes of a regular file that no manifest lists, if it is not too large."""
    with open_regular(path) as file:
        check_size(os.fstat(file.fileno()).st_size, max_bytes, path)
        return file.read(max_bytes)


def check_size(size: int, max_bytes: int, path: Path) -> None:
    """Refuse a file that is larger than files of its kind can be."""
    if size > max_bytes:
        limit = format_bytes(max_bytes)
        raise ValueError(
            f"{path} has {format_bytes(size)}, and regard reads up to {limit} of such files"
        )


def parse_json(content: bytes, path: Path) -> Any:
    """The value a JSON file holds."""
    try:
        value = json.loads(content.decode("utf-8"))
    except RecursionError:
        raise _nesting_error(path) from None
    except ValueError:  # not UTF-8, not JSON, or a number of thousands of digits
        raise ValueError(f"{path} is damaged: it is not JSON") from None
    check_depth(value, path)
    return value


def parse_toml(content: bytes, path: Path) -> dict[str, Any]:
    """The table a TOML file holds."""
    try:
        table = tomllib.loads(content.decode("utf-8"))
    except RecursionError:
        raise _nesting_error(path) from None
    except ValueError as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    check_depth(table, path)
    return table


def check_depth(value: Any, path: Path) -> None:
    """Refuse a value nested so deeply that whoever walks or prints it runs out of stack."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for outer in level for inner in children(outer)]
        if not level:
            return
    raise _nesting_error(path)


def children(value: Any) -> Iterable[Any]:
    """What a list or a table holds."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _nesting_error(path: Path) -> ValueError:
    return ValueError(f"{path} is nested too deeply: more than {MAX_DEPTH} levels")


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file."""
    try:
        return load_file(path)
    except FileNotFoundError:
        raise ValueError(f"{path.parent} is incomplete: {path.name} is missing") from None
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def parse_tensors(content: bytes) -> dict[str, Tensor]:
    """The tensors in the content of a safetensors file."""
    try:
        return load(content)
    except (SafetensorError, RuntimeError) as error:
        raise ValueError(str(error)) from None
    except KeyError as error:
        raise ValueError(f"numbers of the type {error} are not known to torch") from None


def digest(file: BinaryIO, size: int) -> str:
    """The SHA-256 of the first `size` bytes."""
    digester, remaining = hashlib.sha256(), size
    while remaining and (block := file.read(min(remaining, BLOCK_BYTES))):
        digester.update(block)
        remaining -= len(block)
    return digester.hexdigest()
