"""What a run keeps beside its weights: what its numbers stand for."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from math import inf, isfinite
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from regard.atomic import write_atomically
from regard.checkpoints.reading import MAX_TEXT_BYTES, Folder, check_size
from regard.data.tables import Column
from regard.text import Tokenizer

TOKENIZER, LABELS, COLUMNS = "tokenizer.json", "labels.json", "columns.json"


@dataclass(frozen=True)
class Resources:
    """Words, labels, and columns of a table. A task that reads no text has no tokenizer, and most
    have no labels."""

    tokenizer: Tokenizer | None = None
    labels: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()

    @property
    def words(self) -> Tokenizer:
        """The tokenizer, for whoever cannot do without."""
        if self.tokenizer is None:
            raise ValueError(
                "there is no tokenizer in this run: it reads and writes no text; for that its "
                "folder needs a tokenizer.json (or, from Hugging Face, vocab.json and merges.txt, "
                "or vocab.txt)"
            )
        return self.tokenizer

    def size_of(self, model: Any) -> int:
        """How many ids there are: words, or what the model has room for if it came without any."""
        if self.tokenizer is not None:
            return self.tokenizer.size
        size: int = model.config.vocabulary_size
        return size

    @property
    def filler(self) -> int:
        """An id for padding where none is read as a word: any will do without a tokenizer."""
        return 0 if self.tokenizer is None else self.tokenizer.id_of_role("pad")

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json`, `labels.json` and `columns.json`, as far as there is something to
        write."""
        if self.tokenizer is not None:
            _write(folder / TOKENIZER, self.tokenizer.to_json())
        if self.labels:
            _write(folder / LABELS, json.dumps(self.labels, ensure_ascii=False))
        if self.columns:
            columns = [asdict(column) for column in self.columns]
            _write(folder / COLUMNS, json.dumps(columns, ensure_ascii=False, indent=1))

    @classmethod
    def load(cls, files: Folder) -> Resources:
        """What `save` wrote, as the manifest lists it."""
        tokenizer: Tokenizer | None = None
        labels: tuple[str, ...] = ()
        columns: tuple[Column, ...] = ()
        if TOKENIZER in files.entries:
            tokenizer = Tokenizer.from_bytes(files.read(TOKENIZER), files.path / TOKENIZER)
        if LABELS in files.entries:
            labels = _check_labels(files.read_json(LABELS), files.path / LABELS)
        if COLUMNS in files.entries:
            columns = check_columns(files.read_json(COLUMNS), files.path / COLUMNS)
        return cls(tokenizer, labels, columns)


def _write(path: Path, text: str) -> None:
    """Write a file, if it is not longer than whoever loads the run would read."""
    content = text.encode()
    check_size(len(content), MAX_TEXT_BYTES, path)
    write_atomically(path, content)


def _check_labels(labels: object, path: Path) -> tuple[str, ...]:
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise ValueError(f"{path} must be a list of strings")
    if len(set(labels)) != len(labels):
        raise ValueError(f"{path} names a label twice")
    return tuple(labels)


def check_columns(content: object, path: Path) -> tuple[Column, ...]:
    """What a file says of a table's columns, if it can be used."""
    try:
        columns = TypeAdapter(tuple[Column, ...]).validate_python(content)
    except ValidationError as error:
        raise ValueError(f"{path}: {error.errors()[0]['msg']}") from None
    if len({column.name for column in columns}) != len(columns):
        raise ValueError(f"{path} names a column twice")
    if not all(isfinite(column.mean) and 0 < column.scale < inf for column in columns):
        raise ValueError(f"{path} has a mean or a scale that is no number to divide by")
    return columns
