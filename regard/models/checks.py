"""What configs refuse, in the words every config uses: the name, the value, the reason."""

from __future__ import annotations

from typing import Any


def at_least(least: int, config: Any, *names: str) -> None:
    """Refuse a number below `least`; None stands for a default and passes."""
    for name in names:
        value = getattr(config, name)
        if value is not None and value < least:
            raise ValueError(f"{name} ({value}) must be at least {least}")


def shares(config: Any, *names: str) -> None:
    """Refuse a dropout rate outside 0 … 1; None stands for a default and passes."""
    for name in names:
        value = getattr(config, name)
        if value is not None and not 0.0 <= value < 1.0:
            raise ValueError(f"{name} ({value}) must be at least 0 and below 1")


def one_of(choices: tuple[str, ...], config: Any, name: str) -> None:
    """Refuse a word that is none of the choices."""
    value = getattr(config, name)
    if value not in choices:
        raise ValueError(f"{name} ({value!r}) must be one of {', '.join(choices)}")
