"""`regard embed`: texts in, vectors out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from regard.cli.texts import Texts, takes_texts


@click.command()
@takes_texts
@click.option("--pooling", help="mean, over the tokens of a text, or class, the vector of [CLS].")
@click.option("--layer", type=int, help="Which layer; 0 is what the first one reads.")
@click.option("--stateful", is_flag=True, default=None, help="A text goes on from the one before.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="A .npy file instead.")
def embed(texts: Texts, out: Path | None, **settings: Any) -> None:
    """Turn each of TEXTS into a vector, a line of numbers each."""
    given = {name: value for name, value in settings.items() if value is not None}
    if out is None:
        texts.answer("embed", given, shown=lambda each: show(each.output))
        return
    if out.suffix != ".npy":
        raise ValueError(f"--out {out} must end in .npy: an array of NumPy's")
    import numpy as np

    vectors = [answer.output for _, answer in texts.answers("embed", given)]
    if len({np.shape(vector) for vector in vectors}) > 1:
        raise ValueError(f"--out {out}: these texts have vectors of different sizes")
    np.save(out, np.array(vectors, dtype=np.float32), allow_pickle=False)
    click.echo(f"saved {out}: {len(vectors)} vectors")


def show(output: Any) -> str:
    """A vector as a line of numbers; of a vector a word, a line for each; a label as it is."""
    if isinstance(output, str):
        return output
    if output and isinstance(output[0], list):
        return "\n".join(map(show, output))
    return " ".join(f"{number:.6g}" for number in output)
