"""Plain values and tables as TOML, which Python reads and does not write."""

from __future__ import annotations


def to_toml(content: dict[str, object]) -> str:
    """Write a table; what is None is left out, since TOML has no word for it."""
    values = [
        f"{k} = {to_toml_value(v)}\n" for k, v in content.items() if not _table(v) and v is not None
    ]
    tables = [_section(k, v) for k, v in content.items() if _table(v)]
    return "".join(values + tables)


def _section(name: str, content: object) -> str:
    assert isinstance(content, dict)
    inner = {k: v for k, v in content.items() if not _table(v) and v is not None}
    lines = [f"\n[{name}]\n", *(f"{_key(k)} = {to_toml_value(v)}\n" for k, v in inner.items())]
    return "".join(
        lines + [_section(f"{name}.{_key(k)}", v) for k, v in content.items() if _table(v)]
    )


def _table(value: object) -> bool:
    return isinstance(value, dict)


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() else to_toml_value(key)


def to_toml_value(value: object) -> str:
    """Write one value."""
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(k)} = {to_toml_value(v)}" for k, v in value.items())
        return f"{{{inner}}}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(to_toml_value(v) for v in value)}]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'
    return repr(value)
