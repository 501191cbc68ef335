"""The files of a Hugging Face folder, which anybody may have made.

No manifest lists them, so a file is looked at before it is read: it goes by a plain name, is a
regular file, and is no larger than such files can be. A link is followed only inside the folder,
and from a snapshot of the hub's cache to the `blobs` beside it, where the cache keeps its files.
Weights are safetensors; a `pytorch_model.bin` is read by torch's restricted loader, which builds
tensors and runs nothing.
"""

from __future__ import annotations

import os
import pickle
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.checkpoints.memory import check_memory
from regard.checkpoints.reading import (
    MAX_TEXT_BYTES,
    check_size,
    open_regular,
    parse_json,
    read_regular,
    read_tensors,
)

CONFIG = "config.json"
MAX_CONFIG_BYTES = 1 << 20
SAFETENSORS, PICKLED = "model.safetensors", "pytorch_model.bin"
INDEX = ".index.json"
MAX_SHARDS = 1000
ADVICE = ("Weights only load failed", "Please file an issue", "Check the documentation")


class Files:
    """The files of one folder, by name."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._inside = [folder.resolve()]
        if folder.absolute().parent.name == "snapshots":
            self._inside.append(folder.resolve().parent.parent / "blobs")

    def __contains__(self, name: str) -> bool:
        return (self.folder / name).exists()

    def find(self, name: str, max_bytes: int | None = None) -> Path:
        """Where a file really lies; a ValueError for one that should not be read."""
        path = self.folder / name
        try:
            real = path.resolve()
        except (OSError, RuntimeError):  # links in a circle
            raise ValueError(f"{path} cannot be found") from None
        if not any(real.is_relative_to(place) for place in self._inside):
            raise ValueError(f"{path} is a link that leads out of its folder, and is not followed")
        with open_regular(real) as file:
            if max_bytes is not None:
                check_size(os.fstat(file.fileno()).st_size, max_bytes, path)
        return real

    def read(self, name: str, max_bytes: int = MAX_TEXT_BYTES) -> bytes:
        return read_regular(self.find(name), max_bytes)

    def read_json(self, name: str, max_bytes: int = MAX_CONFIG_BYTES) -> dict[str, Any]:
        """The table of a JSON file."""
        path = self.folder / name
        content = parse_json(self.read(name, max_bytes), path)
        if not isinstance(content, dict):
            raise ValueError(f"{path} is not a table of settings")
        return content

    def tensors(self) -> dict[str, Tensor]:
        """All tensors of the weights' file, or files. Their numbers are read when they are used."""
        for name, read in ((SAFETENSORS, read_tensors), (PICKLED, load_restricted)):
            if name in self:
                return self._read_all([name], read)
            if name + INDEX in self:
                return self._read_all(self._shards(name + INDEX), read)
        raise ValueError(
            f"{self.folder} has no weights: {SAFETENSORS}, {PICKLED} and their {INDEX} are missing"
        )

    def _read_all(self, names: list[str], read: Any) -> dict[str, Tensor]:
        places = {name: self.find(name) for name in names}
        size = sum(place.stat().st_size for place in places.values())
        check_memory(size, str(self.folder))
        tensors: dict[str, Tensor] = {}
        for name, place in places.items():
            part = read(place)
            twice = tensors.keys() & part.keys()
            if twice:
                raise ValueError(
                    f"{self.folder / name}: {min(twice)[:160]} is in another file, too"
                )
            tensors |= part
        return tensors

    def _shards(self, index: str) -> list[str]:
        """The files that an index names."""
        path = self.folder / index
        names = self.read_json(index, MAX_TEXT_BYTES).get("weight_map")
        if not isinstance(names, dict) or not all(isinstance(v, str) for v in names.values()):
            raise ValueError(f"{path} has no weight_map of tensors to files")
        ending = Path(index.removesuffix(INDEX)).suffix
        shards = sorted(set(names.values()))
        for name in shards:
            if Path(name).name != name or not name.endswith(ending) or not name.isprintable():
                raise ValueError(
                    f"{path} names {name[:80]!r}, which is no {ending} file in its folder"
                )
        if not shards or len(shards) > MAX_SHARDS:
            raise ValueError(f"{path} names {len(shards)} files; from 1 to {MAX_SHARDS} are read")
        return shards


def load_restricted(path: Path) -> dict[str, Tensor]:
    """The tensors of a file that torch pickled, by the loader that refuses all but tensors."""
    zipped = zipfile.is_zipfile(path)
    try:
        if zipped:
            with zipfile.ZipFile(path) as archive:
                unpacked = sum(entry.file_size for entry in archive.infolist())
            check_memory(unpacked, str(path))
        with warnings.catch_warnings(action="ignore"):  # about pickles it then refuses
            content = torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
    except pickle.UnpicklingError as error:
        reason = _first_reason(str(error))
        raise ValueError(f"{path}: torch's restricted loader refuses it: {reason}") from None
    except OSError:
        raise
    except Exception as error:  # a damaged file can provoke any
        raise ValueError(f"{path} cannot be read: {_first_reason(str(error))}") from None
    return _check_tensors(content, path)


def _check_tensors(content: Any, path: Path) -> dict[str, Tensor]:
    if not isinstance(content, Mapping):
        raise ValueError(f"{path} holds a {type(content).__name__}, not tensors by their names")
    for name, value in content.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise ValueError(f"{path}: {str(name)[:80]!r} is a {type(value).__name__}, no tensor")
        if value.layout != torch.strided or value.is_quantized or value.is_meta:
            raise ValueError(f"{path}: {name[:80]!r} is not stored number by number")
    return dict(content)


def _first_reason(message: str) -> str:
    """What torch has to say, without its advice on how to run a stranger's code all the same."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith(ADVICE)), "no reason given")[:200]
