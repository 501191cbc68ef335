"""`regard generate`: a language model goes on from a prompt."""

from __future__ import annotations

import json
from pathlib import Path

import click

from regard.cli.inputs import decoding_options, inputs_of


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("prompts", nargs=-1)
@click.option("--input", "file", help="A file with a prompt a line; - is standard input.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a prompt.")
@click.option("--stream", "streaming", is_flag=True, help="Print words as they come (one prompt).")
@decoding_options
def generate(
    run: Path,
    prompts: tuple[str, ...],
    file: str | None,
    as_json: bool,
    streaming: bool,
    **settings: object,
) -> None:
    """Continue PROMPTS with RUN, or begin from nothing."""
    from regard.run import load

    loaded = load(run)
    asked = inputs_of(prompts, file) or [""]
    if streaming:
        click.echo(asked[0], nl=False)
        for piece in loaded.stream(asked[0], **settings):
            click.echo(piece, nl=False)
        click.echo()
        return
    for answer in loaded.generate(asked, **settings):
        told = json.dumps(answer.as_dict(), ensure_ascii=False)
        click.echo(told if as_json else answer.text)
