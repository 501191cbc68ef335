"""The sixteen lectures by name. Each is imported when it is played, and not before."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from regard.naming import suggest

if TYPE_CHECKING:
    from regard.lectures.lesson import Lesson

TITLES = {
    "aaba": "Find the B in AABA: scores, weights and output by hand",
    "any-b": "Has there been a B? RNN, LSTM and attention learn to remember",
    "trick-was-sick": "That trick was sick: attention chooses the sense of a word",
    "backprop": "Backpropagation by hand on a linear prediction",
    "soft-database": "A database that answers softly: time, flies, like, an, arrow",
    "sql": "SQL as attention: WHERE id = … and WHERE id LIKE …",
    "apple": "She is eating a green apple: a weighted sum of earlier words",
    "positions": "Telling positions apart: sines, cosines and a binary counter",
    "lstm": "The LSTM cell: a gate that keeps and a gate that ignores",
    "layer-norm": "Layer normalisation: zero mean and unit variance over features",
    "alignment": "The poor don't have any money: a many-to-many alignment",
    "coreference": "The animal, the street and it: what does it refer to?",
    "rnn-memory": "What an RNN remembers of a word after many steps",
    "residual": "A residual block with nothing in it is the identity",
    "teacher-forcing": "You are welcome: training all at once, answering word by word",
    "order": "Attention alone is blind to order",
}
"""A line about each lecture, in the order in which they are best read."""

NAMES = tuple(TITLES)

LENGTHY = {"any-b": "dozens of small networks are trained, which takes about a minute"}
"""Lectures to wait for, and why."""


def play(name: str, **options: Any) -> Lesson:
    """Compute a lecture's example: `play("aaba").numbers["base_3"]["weights"]`.

    `any-b` takes `quick=True`, for a run of seconds at small lengths.
    """
    if name not in TITLES:
        raise ValueError(f"no lecture is named {name!r}; {suggest(name, NAMES)}")
    lesson: Callable[..., Lesson] = import_module(_module(name)).lesson
    known = inspect.signature(lesson).parameters
    for option in options:
        if option not in known:
            takes = ", ".join(known) or "none"
            raise ValueError(f"the lecture {name!r} has no option {option!r}; it has: {takes}")
    return lesson(**options)


def _module(name: str) -> str:
    """The module of a lecture in TITLES; no other name ever becomes an import."""
    return f"regard.lectures.{name.replace('-', '_')}"
