"""`regard verify`: proofs about a run."""

from __future__ import annotations

from pathlib import Path

import click

from regard.cli.texts import files_from_here


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--data", "files", multiple=True, help="A file to train on; source before target.")
def verify(run: Path, files: tuple[str, ...]) -> None:
    """Check RUN: file hashes, cached decoding, batching, resume."""
    from regard.running import load
    from regard.running import verify as check

    loaded = load(run)
    saved = "yes (SHA-256)" if loaded.has_manifest else "not known, there is no manifest"
    click.echo(f"files as they were saved          {saved}")
    proofs = check(loaded, files=files_from_here(files))
    for proof in proofs:
        click.echo(str(proof))
    if not all(proof.holds for proof in proofs):
        raise SystemExit(1)
