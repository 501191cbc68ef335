"""What a lecture hands back: its steps in order, its numbers, and what there is to draw."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the list of lectures must not wait for torch
    from regard.attention import Look
    from regard.looking import Curves

BACKPACKS = "Lecture on Backpack models and attention"
SEQUENCES = "Lecture on neural sequence modelling"
MECHANISMS = "Lecture on attention mechanisms"
SELF_ATTENTION = "Lecture notes on self-attention and Transformers"
MODELS = "Lecture on attention models"


@dataclass(frozen=True)
class Step:
    """A sentence, and the formulas and numbers that belong to it, a line each."""

    text: str
    lines: tuple[str, ...] = ()


def step(text: str, *lines: str) -> Step:
    """A Step of a sentence and any number of lines."""
    return Step(text, lines)


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A worked example: `steps` to read, `numbers` to compute with, pictures to look at.

    Where the lecture has a slip, `slip` says in a line what it writes and what is right, and
    `numbers["as_written"]` holds its version.
    """

    name: str
    title: str
    source: str
    steps: tuple[Step, ...]
    numbers: dict[str, Any]  # plain lists, floats and strings
    slip: str | None = None
    looks: tuple[Look, ...] = ()
    curves: tuple[Curves, ...] = ()
    drawing: str | None = None  # an SVG document
    listing: str | None = None  # the drawing as text

    def text(self) -> str:
        """Title, steps and slip as lines of text."""
        lines = [self.title, self.source, ""]
        for number, step in enumerate(self.steps, start=1):
            lines += _wrap(f"{number:>2}. {step.text}")
            lines += [f"      {line}" for line in step.lines]
        if self.slip is not None:
            lines += ["", *_wrap(f"A slip: {self.slip}")]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, width=96, subsequent_indent="    ")
