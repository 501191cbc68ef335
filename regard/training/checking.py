"""Sections of a recipe against the dataclasses they are meant for.

Unknown keys are refused with their path and the nearest known name, other mistakes with the key,
its value and the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from regard.naming import suggest

ANY_SIZE = 1 << 20  # stands for a size that only the data know, when settings are checked


def check_settings(
    section: str,
    config: type,
    content: Mapping[str, Any],
    others: tuple[str, ...],
    sizes: tuple[str, ...],
    where: str,
) -> dict[str, Any]:
    """The settings of a section as its config has them, but for `others`, which are not its own.

    `sizes` follow from the data: where they are left out, any will do to try the rest.
    """
    hints = get_type_hints(config)
    known = [field.name for field in fields(config)]
    settings = {}
    for key in (key for key in content if key not in others):
        if key not in known:
            hint = suggest(key, [each for each in (*known, *others) if each not in sizes])
            raise ValueError(f"{where}: unknown key {section}.{_printable(key)}; {hint}")
        settings[key] = check_value(hints[key], content[key], f"{where}: {section}.{key}")
    try:
        config(**{**{size: ANY_SIZE for size in sizes if size in hints}, **settings})
    except ValueError as error:
        raise ValueError(f"{where}: {section}.{error}") from None
    except TypeError as error:  # a setting without a default is not given
        raise ValueError(f"{where}: {section}: {error}") from None
    return settings


def check_value(hint: Any, value: Any, where: str) -> Any:
    """A setting as its type wants it."""
    _refuse_boolean(hint, value, where)
    try:
        return TypeAdapter(hint).validate_python(value)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise ValueError(f"{where} ({show(value)}): {reason}") from None


def _refuse_boolean(hint: Any, value: Any, where: str) -> None:
    """TOML's `true` is no number, though Python and pydantic would count it as 1."""
    if isinstance(value, bool) and hint is not Any and bool not in (hint, *get_args(hint)):
        raise ValueError(f"{where} ({str(value).lower()}) must not be true or false")


def _refuse_booleans(kind: type[Any], content: Any, where: str) -> None:
    if not isinstance(content, dict):
        return
    for key, hint in get_type_hints(kind).items():
        value = content.get(key)
        if isinstance(value, dict) and is_dataclass(hint) and isinstance(hint, type):
            _refuse_booleans(hint, value, f"{where}{key}.")
        else:
            _refuse_boolean(hint, value, f"{where}{key}")


def check_as(kind: type[Any], content: dict[str, Any], where: str) -> Any:
    """The content as a dataclass, sections within sections; a ValueError says what does not fit."""
    _refuse_booleans(kind, content, f"{where}: ")
    adapter = TypeAdapter(_strict(kind))
    try:
        return adapter.validate_python(content)
    except ValidationError as error:
        raise ValueError(f"{where}: {_explain(kind, error)}") from None


def _strict(kind: type[Any]) -> type[Any]:
    """Have pydantic refuse unknown keys, here and in the sections below."""
    kind.__pydantic_config__ = ConfigDict(extra="forbid")
    for hint in get_type_hints(kind).values():
        if is_dataclass(hint) and isinstance(hint, type):
            _strict(hint)
    return kind


def _explain(kind: type[Any], error: ValidationError) -> str:
    """The first complaint, in the words of the recipe."""
    first = error.errors()[0]
    path = [str(part) for part in first["loc"]]
    name = _printable(".".join(path))
    if first["type"] == "unexpected_keyword_argument" or first["type"] == "extra_forbidden":
        known = _field_names(kind, path[:-1])
        return f"unknown key {name}; {suggest(path[-1], known)}"
    if first["type"] in ("missing", "missing_argument"):
        return f"{name} is missing"
    message = first["msg"].removeprefix("Value error, ")
    value = first.get("input")
    shown = "" if is_dataclass(value) or isinstance(value, dict) else f" ({show(value)})"
    return f"{name}{shown}: {message}" if name else message


def _printable(name: str) -> str:
    return name if name.isprintable() and len(name) <= 100 else show(name)


def show(value: Any) -> str:
    """A value as an error shows it, which is one line and not a page."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:99]}…"


def _field_names(kind: type[Any], path: list[str]) -> list[str]:
    for part in path:
        inner = get_type_hints(kind).get(part)
        if not (is_dataclass(inner) and isinstance(inner, type)):
            return []
        kind = inner
    return [f.name for f in fields(kind)]
