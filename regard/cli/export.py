"""`regard export`: a run for other libraries."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--to", "target", type=click.Choice(["hf"]), required=True, help="hf: transformers.")
def export(run: Path, folder: Path, target: str) -> None:
    """Write RUN as FOLDER, which Hugging Face's transformers load."""
    from regard.running import export_hugging_face, load

    name = export_hugging_face(load(run), folder)
    click.echo(f"{folder}: {name}")
