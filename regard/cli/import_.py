"""`regard import`: a model of others as a run."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("import")
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("run", type=click.Path(path_type=Path))
def import_(folder: Path, run: Path) -> None:
    """Write the FOLDER of a model as the run folder RUN.

    GPT-2 and BERT from Hugging Face, ELMo from AllenNLP (options.json and HDF5). Commands also
    take a Hugging Face folder as it is; a run folder is checked by its hashes, can be verified, and
    needs nothing of the other.
    """
    from regard.running import import_folder

    imported = import_folder(folder, run)
    size = sum(weight.numel() for weight in imported.model.parameters())
    click.echo(f"{run}: {imported.recipe.model['name']}, {size:,} parameters")
