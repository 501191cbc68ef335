"""`regard align`: word links out of a translator's attention, and their error rate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from regard.metrics import Links


@click.command()
@click.argument("run", type=click.Path(path_type=Path), required=False)
@click.argument("run_back", type=click.Path(path_type=Path), required=False)
@click.option("--source", help="A file of sentences, one a line.")
@click.option("--target", help="Their translations, line by line.")
@click.option("--gold", type=click.Path(path_type=Path), help="The right links, to compare with.")
@click.option("--links", type=click.Path(path_type=Path), help="Links of any aligner, to compare.")
@click.option("--one-based", is_flag=True, help="Links of --gold count from 1.")
@click.option(
    "--method",
    type=click.Choice(["argmax", "threshold"]),
    help="Left out: argmax, or threshold where one is given.",
)
@click.option("--threshold", type=float, help="The least weight of a link, 0.3 if left out.")
@click.option("--path", help="One attention of the model; all of them if left out.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write links here.")
@click.option("--json", "as_json", is_flag=True, help="Print scores with gold as one JSON object.")
def align(
    run: Path | None,
    run_back: Path | None,
    source: str | None,
    target: str | None,
    gold: Path | None,
    links: Path | None,
    one_based: bool,
    out: Path | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Link words by where RUN looks; RUN_BACK translates the other way."""
    from regard.metrics import read_links

    if one_based and gold is None:
        raise ValueError("--one-based says how --gold counts, and there is none")
    wanted = None if gold is None else read_links(gold, one_based=one_based)
    if wanted is not None and not one_based and _count_from_one(wanted):
        click.echo(f"no link of {gold} has a 0; if it counts from 1: --one-based", err=True)
    if links is not None:
        if run is not None or wanted is None or source is not None or target is not None:
            raise ValueError(f"--links {links} is compared with --gold, and takes no run or text")
        _print_score(read_links(links), wanted, as_json)
        return
    if run is None:
        raise ValueError("nothing to align: give a RUN, or --links and --gold")
    if (source is None) != (target is None):
        raise ValueError("--source and --target go together: line n of both is one pair")
    files = [] if source is None or target is None else [source, target]
    found, wanted = _align(run, run_back, files, wanted, settings, as_json)
    lines = "".join(f"{each}\n" for each in found)
    if out is not None:
        from regard.atomic import write_atomically

        write_atomically(out, lines.encode())
    elif not as_json:
        click.echo(lines, nl=False)
    if wanted is not None:
        _print_score(found, wanted, as_json)


def _align(
    run: Path,
    run_back: Path | None,
    files: list[str],
    gold: list[Links] | None,
    settings: dict[str, Any],
    needs_gold: bool,
) -> tuple[list[Links], list[Links] | None]:
    """The links of two files, or of a run's own test data with the gold it may have; and the gold
    to compare them with."""
    from regard.cli.counting import count_done
    from regard.data.corpora import read_pairs
    from regard.running import load
    from regard.running.aligning import align

    loaded = load(run)
    back = None if run_back is None else load(run_back)
    if files:
        pairs = list(read_pairs(files))
    else:
        pairs, own_gold = loaded.task.gold_pairs("test")
        gold = own_gold if gold is None else gold
    if needs_gold and gold is None:
        raise ValueError("--json prints how well links agree with --gold, and there is none")
    with count_done(len(pairs)) as done:
        return align(loaded, pairs, back, gold=gold, done=done, **settings), gold


def _count_from_one(gold: list[Links]) -> bool:
    """Whether links could be counted from 1: there are some, and none has a 0."""
    ends = [min(link) for each in gold for link in each.possible]
    return bool(ends) and min(ends) > 0


def _print_score(found: list[Links], gold: list[Links], as_json: bool) -> None:
    from regard.metrics import aer

    score = aer(found, gold)
    if as_json:
        click.echo(json.dumps({"aer": score.value, **score.details, "signature": str(score)}))
        return
    shares = "  ".join(f"{name} {score.details[name]:.2%}" for name in ("precision", "recall"))
    click.echo(f"aer {score.value:.2%}  {shares}  {int(score.details['links']):,} links", err=True)
