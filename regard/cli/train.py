"""`regard train`: a recipe goes in, a run folder comes out."""

from __future__ import annotations

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
    from regard.run import probed
    from regard.training.signals import STOPPED
    from regard.training.train import train as run

    with Progress() as progress:
        folder, ended = run(
            recipe, out, list(settings), resume=resume, tell=progress.tell, probe=probed
        )
    if not ended:
        click.echo(f"stopped and saved; go on with: regard train {recipe} --out {folder} --resume")
        raise SystemExit(STOPPED)
    if progress.first:
        click.echo(f"run: {folder}")
