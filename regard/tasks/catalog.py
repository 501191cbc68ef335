"""The tasks by their kinds, as a recipe writes them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from regard.config import Recipe
from regard.naming import suggest
from regard.tasks.task import Task

TASKS: dict[str, tuple[str, str] | type[Task[Any]]] = {  # kind → (file, class), or a class of yours
    "language-model": ("language_model", "LanguageModelling"),
    "bidirectional-language-model": ("bidirectional", "BidirectionalModelling"),
    "translation": ("translation", "Translation"),
    "classification": ("classification", "Classification"),
    "pretraining": ("pretraining", "Pretraining"),
    "bits": ("bits", "BitSequences"),
    "table": ("table", "TablePrediction"),
}


def find_task(kind: str) -> type[Task[Any]]:
    """The class of a kind of task."""
    if kind not in TASKS:
        raise ValueError(f"task.kind ({kind!r}) is not known; {suggest(kind, TASKS)}")
    found = TASKS[kind]
    if isinstance(found, type):
        return found
    file, name = found
    task: type[Task[Any]] = getattr(import_module(f"regard.tasks.{file}"), name)
    return task


def make_task(recipe: Recipe) -> Task[Any]:
    """The task of a recipe."""
    return find_task(recipe.task["kind"])(recipe)
