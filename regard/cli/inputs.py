"""What several commands take: texts or a file of them, and how to decode."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


def decoding_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The [decoding] section as options; what is not given stays as the run's recipe has it."""
    for option in (
        click.option("--method", type=click.Choice(["greedy", "sample", "beam"])),
        click.option("--beam", type=int, help="Hypotheses kept at each step."),
        click.option("--n-best", type=int, help="Answers handed back."),
        click.option("--temperature", type=float, help="0 is greedy."),
        click.option("--top-k", type=int, help="Draw from the k likeliest words."),
        click.option("--top-p", type=float, help="Draw from the likeliest share p."),
        click.option("--seed", type=int, help="Of the draws."),
        click.option("--longest", type=int, help="Words at most."),
    ):
        command = option(command)
    return command


def inputs_of(given: tuple[str, ...], file: str | None) -> list[str]:
    """The arguments, or the lines of a file."""
    if file is None:
        return list(given)
    if given:
        raise ValueError(f"--input {file} and a text were given; one of them is enough")
    from regard.data.corpora import lines

    return list(lines(file))


def named(files: tuple[str, ...]) -> list[str]:
    """The files of --data: as they are found from here, else where the recipe has its data."""
    return [str(Path(file).absolute()) if Path(file).exists() else file for file in files]
