"""`regard verify`: proofs about a run."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
def verify(run: Path) -> None:
    """Prove RUN whole, and that cache and batch change nothing."""
    from regard.run import load
    from regard.verifying import verify as proofs

    loaded = load(run)
    click.echo("files as they were saved          yes (SHA-256)")
    failed = False
    for proof in proofs(loaded):
        failed |= not proof.holds
        verdict = "holds" if proof.holds else "FAILS"
        click.echo(f"{proof.claim:<33} {verdict}: largest difference {proof.difference:.2e}")
    if failed:
        raise SystemExit(1)
