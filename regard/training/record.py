"""The record of a run: one JSON object a line, what happened and when."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


class Record:
    """Appends to `record.jsonl`; a resumed run cuts it back to where its checkpoint was taken."""

    def __init__(self, path: Path, length: int | None = None):
        self.path = path
        if length is None:
            path.write_bytes(b"")
        else:
            if not path.is_file() or path.stat().st_size < length:
                raise ValueError(f"{path} is shorter than its checkpoint says: it was changed")
            os.truncate(path, length)

    def write(self, event: str, **values: Any) -> None:
        line = json.dumps({"event": event, **values}, ensure_ascii=False)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def length(self) -> int:
        """Bytes so far, on disk for good."""
        handle = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        return self.path.stat().st_size


def read_record(path: Path) -> list[dict[str, Any]]:
    """All lines of a record, each an event with its values."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
