"""Find the files that a recipe names, or say what to do when they are not there."""

from __future__ import annotations

import os
from pathlib import Path

from regard.data.config import DataConfig, Files


def find_file(name: str, data: DataConfig) -> Path | str:
    """The place of a data file: as it is when absolute or "-", else under data.root, $REGARD_DATA
    or the current folder."""
    if name == "-":
        return name
    path = Path(data.root or os.environ.get("REGARD_DATA") or "") / name
    if path.exists():
        return path
    if Path(name).is_absolute():
        raise ValueError(f"data file {name} is missing")
    what = f" ({data.set})" if data.set else ""
    where = f" People get it from: {data.source}." if data.source else ""
    raise ValueError(
        f"data file {name}{what} is missing: looked for {path}.{where} "
        "$REGARD_DATA or data.root names the folder that holds it"
    )


def find_one(files: Files, data: DataConfig, what: str) -> Path | str:
    """The place of the one file that is named; `what` reads it, for the error."""
    names = [files] if isinstance(files, str) else files or []
    if len(names) != 1:
        raise ValueError(f"{what} reads one file, and {len(names)} are named: {names}")
    return find_file(names[0], data)
