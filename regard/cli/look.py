"""`regard look`: where a run looks."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("text")
@click.option("--target", help="What a translator is made to say; its own answer if left out.")
@click.option("--out", type=click.Path(path_type=Path), help="HTML, SVG, PNG, PDF or JSON.")
def look(run: Path, text: str, target: str | None, out: Path | None) -> None:
    """Show where RUN looks while it reads TEXT."""
    from regard.running import load

    looks = load(run).look(text, target)
    if out is not None:
        looks.save(out)
        click.echo(f"saved {out}")
    else:
        looks.print()
    several = "attention" if len(looks) == 1 else "attentions"
    click.echo(f"{len(looks)} {several} over {len(looks.tokens)} tokens")
