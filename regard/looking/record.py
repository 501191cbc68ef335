"""Looks on disk: `x.json` says what was looked at, `x.safetensors` beside it holds the numbers:
weights, or the queries and keys they follow from where those are smaller.

The format is described in docs/looking.md. Version 2 is what this module writes and reads.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, ValidationError
from safetensors.torch import save
from torch import Tensor

from regard.attention import Label, Look
from regard.checkpoints.reading import check_depth, parse_tensors, read_regular
from regard.looking.computed import (
    StoredVectors,
    collect_vectors,
    describe_vectors,
    max_vector_bytes,
    restore_attended,
)
from regard.looking.files import write_file
from regard.looking.masks import Part

FORMAT, VERSION = "regard-look", 2
Side = Annotated[int, Field(ge=1, le=1 << 16)]
MAX_HEADER_BYTES = 1 << 16  # that a file of weights may have beside its looks


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
    vectors: StoredVectors | None  # None: the weights themselves are stored
    image: (
        Annotated[list[Side], Field(min_length=2, max_length=2)] | None
    )  # rows and columns of pixels
    inner: list[StoredLook]


class StoredWeights(Part):
    file: str
    sha256: str


class Record(Part):
    format: Literal["regard-look"]
    version: Literal[2]
    weights: StoredWeights
    looks: list[StoredLook]


def write_looks(looks: Sequence[Look], path: Path, dtype: torch.dtype = torch.float32) -> None:
    """Save looks, the numbers first: until the record is in place, nothing points to them."""
    weights_path = path.with_suffix(".safetensors")
    stored = [describe_look(look, dtype) for look in looks]
    tensors: dict[str, Tensor] = {}
    for at, (look, description) in enumerate(zip(looks, stored, strict=True)):
        tensors |= collect_tensors(look, description, str(at))
    weights = save(tensors)
    record = {
        "format": FORMAT,
        "version": VERSION,
        "weights": {"file": weights_path.name, "sha256": hashlib.sha256(weights).hexdigest()},
        "looks": [each.model_dump() for each in stored],
    }
    write_file(weights_path, weights)
    write_file(path, (json.dumps(record, indent=1) + "\n").encode())


def describe_look(look: Look, dtype: torch.dtype) -> StoredLook:
    """What the record says of a look: everything but its numbers."""
    return StoredLook.model_construct(
        path=look.path,
        kind=look.kind,
        heads=list(look.heads),
        queries=describe_labels(look.queries),
        keys=describe_labels(look.keys),
        query_text=look.query_text,
        key_text=look.key_text,
        grid=None if look.grid is None else list(look.grid),
        steps=None if look.steps is None else list(look.steps),
        vectors=describe_vectors(look, dtype),
        image=None if look.image is None else list(look.image.shape[:2]),
        inner=[describe_look(each, dtype) for each in look.inner],
    )


def describe_labels(labels: Sequence[Label]) -> list[StoredLabel]:
    return [StoredLabel.model_construct(**asdict(label)) for label in labels]


def collect_tensors(look: Look, stored: StoredLook, name: str) -> dict[str, Tensor]:
    """The numbers of a look and of those inside it, by their names in the file.

    They are copies: safetensors refuses tensors that share memory, as layers with one mask do.
    """
    if stored.vectors is not None:
        tensors = collect_vectors(look, stored.vectors)
    else:
        mask = look.mask
        tensors = {"weights": look.weights} | ({} if mask is None else {"mask": mask})
    if look.image is not None:
        tensors["image"] = look.image
    contiguous = torch.contiguous_format
    named = {f"{name}.{key}": each.clone(memory_format=contiguous) for key, each in tensors.items()}
    for at, (each, described) in enumerate(zip(look.inner, stored.inner, strict=True)):
        named |= collect_tensors(each, described, f"{name}.{at}")
    return named


def read_looks(path: Path) -> list[Look]:
    """The looks of a file, exactly as they were saved."""
    try:
        record = parse_record(path.read_bytes())
        tensors = read_weights(path, record)
        return [restore_look(stored, tensors, str(at)) for at, stored in enumerate(record.looks)]
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
    if version == 1:
        raise ValueError("version 1 is no longer read: look again, and save it anew")
    check_depth(record, Path("it"))  # before it is walked through
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
    """The most a look takes in a file: four bytes a weight, one for its mask, or what its vectors
    take; its image, the looks inside it, and the names of all."""
    sizes = len(stored.heads), len(stored.queries), len(stored.keys)
    numbers = 5 * math.prod(sizes)
    if stored.vectors is not None:
        numbers = max_vector_bytes(stored.vectors, *sizes)
    image = 0 if stored.image is None else 3 * math.prod(stored.image)
    return numbers + image + 512 + sum(map(max_bytes, stored.inner))


def restore_look(stored: StoredLook, tensors: dict[str, Tensor], name: str) -> Look:
    """The look of this name in a record, from what is stored of it."""
    numbers = ("weights", "mask", "queries", "keys", "bias", "positions", "image")
    own = {key: tensors[f"{name}.{key}"] for key in numbers if f"{name}.{key}" in tensors}
    inner = tuple(
        restore_look(each, tensors, f"{name}.{at}") for at, each in enumerate(stored.inner)
    )
    common: dict[str, Any] = {
        "path": stored.path,
        "kind": stored.kind,
        "heads": tuple(stored.heads),
        "queries": [Label(label.text, label.start, label.end) for label in stored.queries],
        "keys": [Label(label.text, label.start, label.end) for label in stored.keys],
        "query_text": stored.query_text,
        "key_text": stored.key_text,
        "grid": None if stored.grid is None else parse_grid(stored.grid),
        "steps": None if stored.steps is None else tuple(stored.steps),
        "inner": inner,
    }
    try:
        if stored.image is not None:
            common["image"] = check_image(own.get("image"), stored.image)
        sizes = len(stored.heads), len(stored.queries), len(stored.keys)
        if stored.vectors is not None:
            return Look.of(restore_attended(stored.vectors, own, *sizes), **common)
        return Look.of_weights(check_weights(own, sizes), mask=own.get("mask"), **common)
    except ValueError as reason:
        raise ValueError(f"looks.{name}: {reason}") from reason


def check_weights(tensors: dict[str, Tensor], sizes: tuple[int, int, int]) -> Tensor:
    """The weights of a look, if they are as many as it has labels."""
    weights = tensors.get("weights")
    if weights is not None and weights.dtype != torch.float32:
        raise ValueError(f"its weights are {weights.dtype}, and should be float32")
    if weights is None or tuple(weights.shape) != sizes:
        found = "missing" if weights is None else f"of shape {tuple(weights.shape)}"
        raise ValueError(
            f"its weights are {found}, and {sizes[0]} heads, {sizes[1]} queries and "
            f"{sizes[2]} keys are named"
        )
    return weights


def check_image(image: Tensor | None, size: list[int]) -> Tensor:
    """The image of a look, if it is as large as is said."""
    if image is None or image.dtype != torch.uint8 or tuple(image.shape) != (*size, 3):
        found = "missing" if image is None else f"{image.dtype} {tuple(image.shape)}"
        raise ValueError(f"its image is {found}, and should be bytes {(*size, 3)}")
    return image


def parse_grid(grid: list[int]) -> tuple[int, int]:
    """Rows and columns of an image."""
    if len(grid) != 2:
        raise ValueError(f"grid ({grid}) must be rows and columns")
    return grid[0], grid[1]
