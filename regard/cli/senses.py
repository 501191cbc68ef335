"""`regard senses`: what each sense of a word predicts."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("word")
@click.option("--top", default=10, show_default=True, help="Words to list for each sense.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def senses(run: Path, word: str, top: int, as_json: bool) -> None:
    """List what each sense of WORD predicts in RUN, a Backpack.

    + are the words whose logits it raises most, - those it lowers most.
    """
    from regard.running import load

    found = load(run).senses(word, top)
    if as_json:
        output = [sense.as_dict() for sense in found]
        click.echo(json.dumps({"input": word, "output": output}, ensure_ascii=False))
        return
    for sense in found:
        for sign, named in (("+", sense.raises), ("-", sense.lowers)):
            head = f"sense {sense.number}" if sign == "+" else ""
            listed = "  ".join(f"{other} {logit:+.1f}" for other, logit in named)
            click.echo(f"{head:<9} {sign} {listed}")


def parse_changes(given: tuple[str, ...]) -> dict[str, dict[int, float | tuple[str, int]]]:
    """--sense WORD:3=0 and WORD:3=OTHER:5, as `Run.generate(senses=…)` takes them."""
    changes: dict[str, dict[int, float | tuple[str, int]]] = {}
    for text in given:
        place, equals, value = text.rpartition("=")
        word, sense = _parse_place(place, text)
        if not equals:
            raise _misspelled(text)
        try:
            change: float | tuple[str, int] = float(value)
        except ValueError:
            change = _parse_place(value, text)
        if sense in changes.setdefault(word, {}):
            raise ValueError(f"--sense {text}: sense {sense} of {word!r} was given before")
        changes[word][sense] = change
    return changes


def _parse_place(place: str, text: str) -> tuple[str, int]:
    """WORD:3"""
    word, _, sense = place.rpartition(":")
    if not word or not sense.isdecimal():
        raise _misspelled(text)
    return word, int(sense)


def _misspelled(text: str) -> ValueError:
    return ValueError(
        f"--sense {text}: must be WORD:NUMBER=FACTOR, as sick:3=0, or WORD:NUMBER=OTHER:NUMBER"
    )
