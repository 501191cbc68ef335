"""`regard translate`: sentences in, sentences out."""

from __future__ import annotations

import json
from pathlib import Path

import click

from regard.cli.inputs import decoding_options, inputs_of


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("texts", nargs=-1)
@click.option("--input", "file", help="A file with a sentence a line; - is standard input.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a sentence.")
@decoding_options
def translate(
    run: Path, texts: tuple[str, ...], file: str | None, as_json: bool, **settings: object
) -> None:
    """Translate each of TEXTS with RUN."""
    from regard.run import load

    asked = inputs_of(texts, file)
    if not asked:
        raise ValueError("nothing to translate: give a text, or --input FILE")
    for answer in load(run).translate(asked, **settings):
        click.echo(json.dumps(answer.as_dict(), ensure_ascii=False) if as_json else answer.output)
