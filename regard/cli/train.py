"""`regard train`: a recipe goes in, a run folder comes out."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click


@click.command()
@click.argument("recipe")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="The run folder.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a setting.")
@click.option("--resume", is_flag=True, help="Go on with a run that was stopped.")
def train(recipe: str, out: Path | None, settings: tuple[str, ...], resume: bool) -> None:
    """Train RECIPE: a shipped one by name, or a TOML file."""
    from regard.cli.progress import Progress
    from regard.running import Stopped
    from regard.running import train as run
    from regard.training.signals import STOPPED

    try:
        with compiler_errors_in_a_line(), Progress() as progress:
            folder = run(recipe, out, settings, resume=resume, report=progress.report).folder
    except Stopped as stopped:
        if progress.first:
            click.echo(str(stopped))
        raise SystemExit(STOPPED) from None
    if progress.first:
        click.echo(f"run: {folder}")


@contextmanager
def compiler_errors_in_a_line() -> Iterator[None]:
    """Within the `with`, what torch.compile complains about at length is said in a line."""
    if "TORCH_LOGS" not in os.environ:
        # Its hints on how a model might be compiled in larger pieces are for whoever wrote it.
        logging.getLogger("torch._dynamo").setLevel(logging.ERROR)
    try:
        yield
    except RuntimeError as error:
        # Known by its module: importing the compiler would cost every run a second.
        if not type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
            raise
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"training.compile: torch cannot compile here: {reason}; "
            "--set training.compile=false trains without"
        ) from None
