"""What a run keeps beside its weights: what its numbers stand for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from regard.atomic import write_atomically
from regard.checkpoints.reading import MAX_TEXT_BYTES, Folder, check_size
from regard.text import Tokenizer

TOKENIZER, LABELS = "tokenizer.json", "labels.json"


@dataclass(frozen=True)
class Resources:
    """Words and labels. A task that reads no text has no tokenizer, and most have no labels."""

    tokenizer: Tokenizer | None = None
    labels: tuple[str, ...] = ()

    @property
    def words(self) -> Tokenizer:
        """The tokenizer, for whoever cannot do without."""
        if self.tokenizer is None:
            raise ValueError("there is no tokenizer in this run: it reads and writes no text")
        return self.tokenizer

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json` and `labels.json`, as far as there is something to write."""
        if self.tokenizer is not None:
            _write(folder / TOKENIZER, self.tokenizer.to_json())
        if self.labels:
            _write(folder / LABELS, json.dumps(self.labels, ensure_ascii=False))

    @classmethod
    def load(cls, files: Folder) -> Resources:
        """What `save` wrote, as the manifest lists it."""
        tokenizer: Tokenizer | None = None
        labels: tuple[str, ...] = ()
        if TOKENIZER in files.entries:
            tokenizer = Tokenizer.from_bytes(files.read(TOKENIZER), files.path / TOKENIZER)
        if LABELS in files.entries:
            labels = _check_labels(files.read_json(LABELS), files.path / LABELS)
        return cls(tokenizer, labels)


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
