"""The sixteen lectures by name. Each is imported when it is played, and not before."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

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

LENGTHY = {"any-b": "54 small networks are trained, which takes about a minute"}
"""Lectures to wait for, and why."""


def play(name: str, **options: Any) -> Lesson:
    """Work a lecture's example: `play("aaba").numbers["base_3"]["weights"]`.

    `any-b` takes `quick=True`, for a run of seconds at small lengths.
    """
    if name not in TITLES:
        near = difflib.get_close_matches(str(name), NAMES, n=1, cutoff=0)
        raise ValueError(
            f"no lecture is named {name!r}; the nearest is {near[0]!r}, all are: {', '.join(NAMES)}"
        )
    lesson = LESSONS[name]
    known = inspect.signature(lesson).parameters
    for option in options:
        if option not in known:
            takes = ", ".join(known) or "none"
            raise ValueError(f"the lecture {name!r} has no option {option!r}; it has: {takes}")
    return lesson(**options)


def _aaba() -> Lesson:
    from regard.lectures.aaba import lesson

    return lesson()


def _any_b(quick: bool = False) -> Lesson:
    from regard.lectures.any_b import lesson

    return lesson(quick=quick)


def _trick_was_sick() -> Lesson:
    from regard.lectures.trick_was_sick import lesson

    return lesson()


def _backprop() -> Lesson:
    from regard.lectures.backprop import lesson

    return lesson()


def _soft_database() -> Lesson:
    from regard.lectures.soft_database import lesson

    return lesson()


def _sql() -> Lesson:
    from regard.lectures.sql import lesson

    return lesson()


def _apple() -> Lesson:
    from regard.lectures.apple import lesson

    return lesson()


def _positions() -> Lesson:
    from regard.lectures.positions import lesson

    return lesson()


def _lstm() -> Lesson:
    from regard.lectures.lstm import lesson

    return lesson()


def _layer_norm() -> Lesson:
    from regard.lectures.layer_norm import lesson

    return lesson()


def _alignment() -> Lesson:
    from regard.lectures.alignment import lesson

    return lesson()


def _coreference() -> Lesson:
    from regard.lectures.coreference import lesson

    return lesson()


def _rnn_memory() -> Lesson:
    from regard.lectures.rnn_memory import lesson

    return lesson()


def _residual() -> Lesson:
    from regard.lectures.residual import lesson

    return lesson()


def _teacher_forcing() -> Lesson:
    from regard.lectures.teacher_forcing import lesson

    return lesson()


def _order() -> Lesson:
    from regard.lectures.order import lesson

    return lesson()


LESSONS: dict[str, Callable[..., Lesson]] = {
    "aaba": _aaba,
    "any-b": _any_b,
    "trick-was-sick": _trick_was_sick,
    "backprop": _backprop,
    "soft-database": _soft_database,
    "sql": _sql,
    "apple": _apple,
    "positions": _positions,
    "lstm": _lstm,
    "layer-norm": _layer_norm,
    "alignment": _alignment,
    "coreference": _coreference,
    "rnn-memory": _rnn_memory,
    "residual": _residual,
    "teacher-forcing": _teacher_forcing,
    "order": _order,
}
