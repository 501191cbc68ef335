"""`regard translate`: sentences in, sentences out."""

from __future__ import annotations

import click

from regard.cli.texts import Texts, decoding_options, takes_texts


@click.command()
@takes_texts
@decoding_options
def translate(texts: Texts, **settings: object) -> None:
    """Translate each of TEXTS with RUN."""
    texts.answer("translate", settings)
