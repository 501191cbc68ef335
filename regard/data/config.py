"""The [data] section of a recipe: where examples come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Files = str | list[str] | None


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Files, or a generator that needs none."""

    train: Files = None  # a file, or [source, target]; .gz and .xz as they are
    valid: Files = None
    test: Files = None
    format: str = "text"  # or "tsv", "csv", "jsonl"
    columns: list[str | int] | None = None  # what is read first, then what is wanted
    taught_by: list[str] | None = None  # runs whose answers are learned from, too: teachers
    vectors: str | None = None  # word vectors to start from: a word and its numbers a line
    root: str | None = None  # where relative paths begin; else $REGARD_DATA, or the recipe
    # lines ended by </s>, the sentences found in each line, or the text as it stands
    unit: Literal["line", "sentence", "character"] = "line"
    valid_share: float = 0.0  # without data.valid: the last share of data.train
    generator: str | None = None  # e.g. "numbers-de"
    examples: int = 20_000  # how many the generator makes for training
    valid_examples: int = 1_000  # and for the other splits
    test_examples: int = 1_000
    set: str = ""  # what people call the data, for the message when it is missing
    source: str = ""  # where people get it

    def __post_init__(self) -> None:
        if not 0 <= self.valid_share < 1:
            raise ValueError(f"valid_share ({self.valid_share}) must be at least 0 and below 1")
