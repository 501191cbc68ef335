"""Finding the files a recipe names, and saying what to do when they are not there."""

from __future__ import annotations

import os
from pathlib import Path

from regard.training.recipe import DataConfig


def found(name: str, data: DataConfig, beside: Path) -> Path | str:
    """A data file: as it is when absolute or "-", else under data.root, $REGARD_DATA, or beside the
    recipe."""
    if name == "-":
        return name
    root = Path(data.root or os.environ.get("REGARD_DATA") or beside)
    path = root / name
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


def toml(content: dict[str, object]) -> str:
    """Plain values and tables as TOML; what is None is left out, since TOML has no word for it."""
    values = [f"{k} = {_value(v)}\n" for k, v in content.items() if not _table(v) and v is not None]
    tables = [_section(k, v) for k, v in content.items() if _table(v)]
    return "".join(values + tables)


def _section(name: str, content: object) -> str:
    assert isinstance(content, dict)
    inner = {k: v for k, v in content.items() if not _table(v) and v is not None}
    lines = [f"\n[{name}]\n", *(f"{_key(k)} = {_value(v)}\n" for k, v in inner.items())]
    return "".join(
        lines + [_section(f"{name}.{_key(k)}", v) for k, v in content.items() if _table(v)]
    )


def _table(value: object) -> bool:
    return isinstance(value, dict)


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() else _value(key)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(v) for v in value)}]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'
    return repr(value)
