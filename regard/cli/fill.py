"""`regard fill`: texts with a hidden word in, the likeliest words out."""

from __future__ import annotations

import click

from regard.cli.texts import Texts, takes_texts


@click.command()
@takes_texts
@click.option("--n-best", type=int, help="Guesses for each text, 5 if left out.")
def fill(texts: Texts, n_best: int | None) -> None:
    """Guess the words that TEXTS hide.

    regard fill RUN "The [MASK] barked"
    """
    texts.answer("fill", {"n_best": n_best}, shown=lambda each: f"{each.output}\t{each.score:.4f}")
