"""`--set a.b=value`: settings that a user types over a recipe's own."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def apply_settings(content: dict[str, Any], settings: list[str]) -> None:
    """Put every `a.b=value` into the content of a recipe."""
    for setting in settings:
        override(content, setting)
    given = {setting.partition("=")[0].strip() for setting in settings}
    training = content.get("training")
    if isinstance(training, dict):
        # A length in steps replaces one in epochs, and the other way round.
        for one, other in (("steps", "epochs"), ("epochs", "steps")):
            if f"training.{one}" in given and f"training.{other}" not in given:
                training.pop(other, None)
    data = content.get("data")
    if isinstance(data, dict):
        for key in ("train", "valid", "test", "root"):
            if f"data.{key}" in given:
                data[key] = _from_here(data[key])


def _from_here(files: Any) -> Any:
    """A path that a user types is relative to where they are, not to where the recipe is."""
    if isinstance(files, list):
        return [_from_here(file) for file in files]
    if not isinstance(files, str) or files == "-":
        return files
    return str(Path(files).absolute())


def override(content: dict[str, Any], setting: str) -> None:
    """Put `a.b=value` into the content; the value is TOML, or a string if it is not."""
    path, equals, text = setting.partition("=")
    *above, last = path.strip().split(".")
    if not equals or not last:
        raise ValueError(f"--set {setting!r} must be like training.steps=100")
    place = content
    for part in above:
        place = place.setdefault(part, {})
        if not isinstance(place, dict):
            raise ValueError(f"--set {setting!r}: {part} is a value, not a section")
    try:
        place[last] = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        place[last] = text
    except RecursionError:
        raise ValueError(f"--set {path}: the value is nested too deeply") from None
