"""How far a command has come with a file, as a bar on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def count_done(total: int | None) -> Iterator[Callable[[], None]]:
    """A function to be called for each text that is done; nobody but a terminal sees the bar."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda: None
        return
    columns = (
        TextColumn("{task.completed}" if total is None else "{task.completed} of {task.total}"),
        BarColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.advance(task)
