"""`regard import`: a model of others as a run."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("import")
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("run", type=click.Path(path_type=Path))
def import_(folder: Path, run: Path) -> None:
    """Write the Hugging Face FOLDER as the run folder RUN.

    GPT-2 and BERT. Commands also take such a folder as it is; a run folder is checked by its
    hashes, can be verified, and needs nothing of the other.
    """
    from regard.running import import_hugging_face

    imported = import_hugging_face(folder, run)
    size = sum(weight.numel() for weight in imported.model.parameters())
    click.echo(f"{run}: {imported.recipe.model['name']}, {size:,} parameters")
