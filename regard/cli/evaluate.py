"""`regard evaluate`: a run against a text."""

from __future__ import annotations

import json
from pathlib import Path

import click

from regard.cli.texts import files_from_here


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("more", nargs=-1, metavar="")
@click.option(
    "--data", "files", multiple=True, metavar="FILE…", help="Files; source before target."
)
@click.option("--split", type=click.Choice(["valid", "test"]), help="Of the recipe's own data.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def evaluate(
    run: Path, more: tuple[str, ...], files: tuple[str, ...], split: str | None, as_json: bool
) -> None:
    """Score RUN on a split of its data, or on files of yours."""
    if more and not files:
        raise ValueError(f"{more[0]!r} is one argument too many; --data goes before files")
    files += more  # --data SOURCE TARGET: an option takes one, the rest is left over
    if files and split:
        raise ValueError(f"--data {files[0]} and --split {split} were given; one is enough")
    from regard.running import load

    values = load(run).evaluate(split or "valid", files=files_from_here(files))
    if as_json:
        click.echo(json.dumps(values, ensure_ascii=False))
        return
    for name, value in values.items():
        click.echo(f"{name:<12} {value:.6g}" if isinstance(value, float) else f"{name:<12} {value}")
