"""The terminal somebody prints to: how wide it is, and whether it knows colours."""

from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.text import Text

MIN_WIDTH = 20
SIXTEEN_COLOURS = ("standard", "windows")  # rich's names for systems too poor for a scale


def make_console(file: TextIO | None, colour: bool | None, width: int | None) -> Console:
    """The console to print to; `None` leaves the choice to the terminal and its environment."""
    if width is not None and width < MIN_WIDTH:
        raise ValueError(f"width ({width}) must be at least {MIN_WIDTH}")
    if colour is None:
        return Console(file=file, width=width)
    if not colour:
        return Console(file=file, width=width, color_system=None)
    found = Console(file=file, force_terminal=True, no_color=False).color_system
    return Console(
        file=file,
        width=width,
        force_terminal=True,
        no_color=False,
        color_system="256" if found == "256" else "truecolor",
    )


def width_and_colour(console: Console) -> tuple[int, bool]:
    """The width of a console, and whether it has colours enough for a scale."""
    colour = console.color_system not in (None, *SIXTEEN_COLOURS) and not console.no_color
    return max(console.width, MIN_WIDTH), colour


def print_lines(console: Console, lines: Iterable[Text]) -> None:
    """Print the lines and a blank one."""
    for line in lines:
        # soft_wrap: the lines are as wide as they should be, and nobody else may break them.
        console.print(line, soft_wrap=True, highlight=False, markup=False, emoji=False)
    console.print()
