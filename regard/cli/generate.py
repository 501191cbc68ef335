"""`regard generate`: a language model goes on from a prompt."""

from __future__ import annotations

import click

from regard.cli.senses import parse_changes
from regard.cli.texts import Texts, decoding_options, takes_texts


@click.command()
@takes_texts
@decoding_options
@click.option(
    "--sense",
    "changed_senses",
    multiple=True,
    metavar="WORD:NUMBER=FACTOR",
    help="Scale a sense of a word (Backpack), or take another's: sick:3=ill:5.",
)
@click.option("--stream", "streaming", is_flag=True, help="Print words as they come (one prompt).")
def generate(
    texts: Texts, streaming: bool, changed_senses: tuple[str, ...], **settings: object
) -> None:
    """Continue TEXTS with RUN, or begin from nothing."""
    if changed_senses:
        settings["senses"] = parse_changes(changed_senses)
    if streaming:
        stream(texts, settings)
        return
    texts.answer(
        "generate",
        settings,
        nothing=("",),
        shown=lambda candidate: candidate.text,
        between="\n",  # answers may have lines of their own
    )


def stream(texts: Texts, settings: dict[str, object]) -> None:
    """Print one answer word by word."""
    several = f"{len(texts.given)} prompts" if len(texts.given) > 1 else ""
    from_file = "--input" if texts.file is not None else ""
    for reason in (several, from_file, "--json" * texts.as_json, "--look" * bool(texts.look)):
        if reason:
            raise ValueError(
                f"--stream prints one answer word by word; {reason} does not go with it"
            )
    from regard.running import load

    prompt = "".join(texts.given)
    pieces = load(texts.run).stream(prompt, "generate", **settings)
    first = next(pieces, "")  # what is refused is refused before anything is printed
    click.echo(prompt + first, nl=False)
    for piece in pieces:
        click.echo(piece, nl=False)
    click.echo()
