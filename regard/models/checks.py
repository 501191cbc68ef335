"""What configs refuse, in the words every config uses: the name, the value, the reason."""

from __future__ import annotations

from typing import Any


def check_at_least(least: int, config: Any, *names: str) -> None:
    """Refuse a number below `least`; None stands for a default and passes."""
    for name in names:
        value = getattr(config, name)
        if value is not None and value < least:
            raise ValueError(f"{name} ({value}) must be at least {least}")


def check_above_zero(config: Any, *names: str) -> None:
    """Refuse a number of 0 and below; None stands for a default and passes."""
    for name in names:
        value = getattr(config, name)
        if value is not None and value <= 0:
            raise ValueError(f"{name} ({value}) must be above 0")


def check_rates(config: Any, *names: str) -> None:
    """Refuse a dropout rate below 0, or of 1 and more; None stands for a default and passes."""
    for name in names:
        value = getattr(config, name)
        if value is not None and not 0.0 <= value < 1.0:
            raise ValueError(f"{name} ({value}) must be at least 0 and below 1")


def check_one_of(choices: tuple[str, ...], config: Any, name: str) -> None:
    """Refuse a word that is none of the choices."""
    value = getattr(config, name)
    if value not in choices:
        raise ValueError(f"{name} ({value!r}) must be one of {', '.join(choices)}")


def check_equal_shares(config: Any) -> None:
    """Refuse heads that cannot share the model evenly."""
    if config.model_size % config.heads:
        raise ValueError(
            f"model_size ({config.model_size}) must be a multiple of heads ({config.heads}): "
            "each head takes an equal share"
        )


def check_tied(config: Any, features: str, embedding: str) -> None:
    """Refuse to tie an embedding to an output layer that reads vectors of another size."""
    size, other = getattr(config, features), getattr(config, embedding)
    if config.tied and size != other:
        raise ValueError(
            f"{features} ({size}) must be {embedding} ({other}) where one table serves both (tied)"
        )


def check_shared(config: Any) -> None:
    """Refuse one table for two vocabularies."""
    if config.shared and config.source_vocabulary_size not in (None, config.vocabulary_size):
        raise ValueError(
            f"source_vocabulary_size ({config.source_vocabulary_size}) must be vocabulary_size "
            f"({config.vocabulary_size}) where both sides have one table (shared)"
        )


def check_classes(classes: int | None) -> int:
    """How many classes a classifier tells apart; refused where it is not said."""
    if classes is None:
        raise ValueError("classes (None) must be at least 1: how many are to be told apart?")
    return classes


def check_length(config: Any, length: int) -> None:
    """Refuse a text that is longer than a model has positions."""
    if length > config.longest:
        raise ValueError(
            f"the text has {length} tokens, but this model has {config.longest} positions (longest)"
        )
