"""`regard lecture [NAME]`: the worked examples, with their numbers and pictures."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as one JSON object.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Save the picture: HTML, SVG, PNG or PDF.",
)
def lecture(name: str | None, as_json: bool, out: Path | None) -> None:
    """Play a worked example by NAME; without a name, list them all."""
    from regard.lectures.catalog import LENGTHY, NAMES, TITLES, play

    if name is None:
        if as_json:
            click.echo(json.dumps(TITLES, ensure_ascii=False))
            return
        width = max(map(len, NAMES))
        for each in NAMES:
            click.echo(f"{each:<{width}}  {TITLES[each]}")
        return
    if out is not None:
        from regard.cli.output import check_output_path

        check_output_path(out)
    if name in LENGTHY:
        click.echo(f"{LENGTHY[name]} …", err=True)
    lesson = play(name)
    if as_json:
        click.echo(json.dumps(lesson.numbers, ensure_ascii=False))
    else:
        from regard.cli.output import print_lesson

        print_lesson(lesson)
    if out is not None:
        from regard.cli.output import save_pictures

        for path in save_pictures(lesson, out):
            click.echo(f"saved {path}", err=as_json)
