"""`regard classify`: texts in, labels out."""

from __future__ import annotations

import click

from regard.cli.embed import show
from regard.cli.texts import Texts, takes_texts


@click.command()
@takes_texts
@click.option("--n-best", type=int, help="Labels of each text with their probabilities.")
def classify(texts: Texts, n_best: int | None) -> None:
    """Label each of TEXTS with RUN."""
    several = n_best is not None and n_best > 1
    texts.answer(
        "classify",
        {"n_best": n_best},
        shown=lambda each: (
            f"{show(each.output)}\t{each.score:.4f}" if several else show(each.output)
        ),
    )
