"""`regard verify`: proofs about a run."""

from __future__ import annotations

from pathlib import Path

import click

from regard.cli.texts import files_from_here


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--data", "files", multiple=True, help="A file to train on; source before target.")
def verify(run: Path, files: tuple[str, ...]) -> None:
    """Prove RUN whole; cache, batch and resuming change nothing."""
    from regard.run import load
    from regard.verifying import verify as proofs

    loaded = load(run)
    click.echo("files as they were saved          yes (SHA-256)")
    found = proofs(loaded, files=files_from_here(files))
    for proof in found:
        click.echo(str(proof))
    if not all(proof.holds for proof in found):
        raise SystemExit(1)
