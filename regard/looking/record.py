"""Looks on disk: `x.json` says what was looked at, `x.safetensors` beside it holds the weights.

The format is described in docs/looking.md. Version 1 is what this module writes and reads.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors.torch import save
from torch import Tensor

from regard.attention import Label, Look
from regard.checkpoints.reading import parse_tensors, read_regular
from regard.looking.files import write_file

FORMAT, VERSION = "regard-look", 1
MAX_HEADER_BYTES = 1 << 16  # that a file of weights may have beside its looks


class Part(BaseModel):
    """A piece of the file; a key nobody knows is refused rather than lost."""

    model_config = ConfigDict(extra="forbid", strict=True)


class StoredLabel(Part):
    text: str
    start: int | None
    end: int | None


class StoredLook(Part):
    path: str
    kind: str
    heads: list[str]
    queries: list[StoredLabel]
    keys: list[StoredLabel]
    query_text: str | None
    key_text: str | None
    grid: list[int] | None
    steps: list[int] | None


class StoredWeights(Part):
    file: str
    sha256: str


class Record(Part):
    format: Literal["regard-look"]
    version: Literal[1]
    weights: StoredWeights
    looks: list[StoredLook]


def write_looks(looks: Sequence[Look], path: Path) -> None:
    """Save looks, the weights first: until the record is in place, nothing points to them."""
    weights_path = path.with_suffix(".safetensors")
    weights = save(collect_tensors(looks))
    record = {
        "format": FORMAT,
        "version": VERSION,
        "weights": {"file": weights_path.name, "sha256": hashlib.sha256(weights).hexdigest()},
        "looks": [to_json(look) for look in looks],
    }
    write_file(weights_path, weights)
    write_file(path, (json.dumps(record, indent=1) + "\n").encode())


def collect_tensors(looks: Sequence[Look]) -> dict[str, Tensor]:
    """The weights and masks of looks by their names in the file.

    They are copies: safetensors refuses tensors that share memory, as layers with one mask do.
    """
    tensors: dict[str, Tensor] = {}
    for at, look in enumerate(looks):
        tensors[f"{at}.weights"] = look.weights.clone(memory_format=torch.contiguous_format)
        if (mask := look.mask) is not None:
            tensors[f"{at}.mask"] = mask.clone(memory_format=torch.contiguous_format)
    return tensors


def to_json(look: Look) -> dict[str, Any]:
    """What the record says of a look: everything but its numbers."""
    return {
        "path": look.path,
        "kind": look.kind,
        "heads": list(look.heads),
        "queries": [asdict(label) for label in look.queries],
        "keys": [asdict(label) for label in look.keys],
        "query_text": look.query_text,
        "key_text": look.key_text,
        "grid": None if look.grid is None else list(look.grid),
        "steps": None if look.steps is None else list(look.steps),
    }


def read_looks(path: Path) -> list[Look]:
    """The looks of a file, exactly as they were saved."""
    try:
        record = parse_record(path.read_bytes())
        tensors = read_weights(path, record)
        return [restore_look(stored, tensors, at) for at, stored in enumerate(record.looks)]
    except (OSError, ValueError) as reason:
        raise ValueError(f"{path}: {reason}") from reason


def parse_record(content: bytes) -> Record:
    """The record in the content of a .json; a ValueError says what is wrong with it."""
    try:
        record = json.loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as reason:  # not UTF-8, not JSON, or a number of thousands of digits
        raise ValueError(f"not JSON ({reason})") from reason
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ValueError(f'not a saved look: it has no "format": "{FORMAT}"')
    version = record.get("version")
    if isinstance(version, int) and version > VERSION:
        raise ValueError(
            f"version {version} is newer than {VERSION}, the last this regard can read"
        )
    try:
        return Record.model_validate(record)
    except ValidationError as reason:
        first = reason.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"{place}: {first['msg']}") from reason


def read_weights(path: Path, record: Record) -> dict[str, Tensor]:
    """The tensors of the file named in the record, if they are the ones it was saved with."""
    stored = record.weights
    plain = stored.file.isprintable() and Path(stored.file).name == stored.file
    if stored.file in ("", "..") or not plain:
        raise ValueError(f"weights.file ({stored.file!r}) must be the name of a file beside it")
    max_size = MAX_HEADER_BYTES + sum(map(max_bytes, record.looks))
    content = read_regular(path.with_name(stored.file), max_size)
    if hashlib.sha256(content).hexdigest() != stored.sha256:
        raise ValueError(f"{stored.file} is not the file it was saved with: its SHA-256 differs")
    try:
        return parse_tensors(content)
    except ValueError as reason:
        raise ValueError(f"{stored.file} holds no safetensors ({reason})") from reason


def max_bytes(stored: StoredLook) -> int:
    """The most a look takes in a file: four bytes a weight, one for its mask, and two names."""
    return 5 * len(stored.heads) * len(stored.queries) * len(stored.keys) + 256


def restore_look(stored: StoredLook, tensors: dict[str, Tensor], at: int) -> Look:
    """The look at position `at` of a record, from what is stored of it."""
    weights = tensors.get(f"{at}.weights")
    if weights is not None and weights.dtype != torch.float32:
        raise ValueError(f"looks.{at}: its weights are {weights.dtype}, and should be float32")
    if weights is None or weights.shape != (
        len(stored.heads),
        len(stored.queries),
        len(stored.keys),
    ):
        found = "missing" if weights is None else f"of shape {tuple(weights.shape)}"
        raise ValueError(
            f"looks.{at}: its weights are {found}, and {len(stored.heads)} heads, "
            f"{len(stored.queries)} queries and {len(stored.keys)} keys are named"
        )
    return Look.of_weights(
        weights,
        path=stored.path,
        kind=stored.kind,
        heads=tuple(stored.heads),
        queries=[Label(label.text, label.start, label.end) for label in stored.queries],
        keys=[Label(label.text, label.start, label.end) for label in stored.keys],
        mask=tensors.get(f"{at}.mask"),
        query_text=stored.query_text,
        key_text=stored.key_text,
        grid=None if stored.grid is None else parse_grid(stored.grid),
        steps=None if stored.steps is None else tuple(stored.steps),
    )


def parse_grid(grid: list[int]) -> tuple[int, int]:
    """Rows and columns of an image."""
    if len(grid) != 2:
        raise ValueError(f"grid ({grid}) must be rows and columns")
    return grid[0], grid[1]
