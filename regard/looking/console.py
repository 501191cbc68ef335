"""The terminal somebody prints to: how wide it is, and whether it knows colours."""

from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.text import Text

NARROWEST = 20
FEW = ("standard", "windows")  # sixteen colours make no scale


def console_for(file: TextIO | None, colour: bool | None, width: int | None) -> Console:
    """`None` leaves the choice to the terminal and its environment."""
    if width is not None and width < NARROWEST:
        raise ValueError(f"width ({width}) must be at least {NARROWEST}")
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


def room(console: Console) -> tuple[int, bool]:
    """Its width, and whether it has colours enough for a scale."""
    colour = console.color_system not in (None, *FEW) and not console.no_color
    return max(console.width, NARROWEST), colour


def show(console: Console, lines: Iterable[Text]) -> None:
    """Print the lines and a blank one."""
    for line in lines:
        # soft_wrap: the lines are as wide as they should be, and nobody else may break them.
        console.print(line, soft_wrap=True, highlight=False, markup=False, emoji=False)
    console.print()
