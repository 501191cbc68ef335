"""`regard demo`: train a translator on built-in data, translate, draw its alignment."""

from __future__ import annotations

from pathlib import Path

import click

RECIPE = "numbers-de"


def train_or_resume(run: Path) -> None:
    """Train the demo's translator, from where it was stopped if it was."""
    from regard.cli.progress import Progress
    from regard.running import Stopped, train
    from regard.training.recipe import read_recipe
    from regard.training.signals import STOPPED

    recipe = run / "recipe.toml"
    begun = (run / "checkpoints").is_dir() and recipe.is_file()
    if begun and read_recipe(str(recipe)).name != RECIPE:
        raise ValueError(f"--run {run} holds another run; name a folder of the demo's own")
    if begun:
        click.echo(f"   {run} was begun already; going on with it.")
    try:
        with Progress() as progress:
            train(recipe if begun else RECIPE, run, resume=begun, report=progress.report)
    except Stopped:
        click.echo("stopped and saved; the same command goes on with it")
        raise SystemExit(STOPPED) from None


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("look.html"),
    show_default=True,
    help="Where the picture goes: HTML, SVG, PNG, PDF or JSON.",
)
@click.option(
    "--run",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs/demo"),
    show_default=True,
    help="Where the trained model goes, or is found.",
)
def demo(out: Path, run: Path) -> None:
    """Train a small translator, use it, and draw where it looks."""
    from regard.cli.output import check_output_path
    from regard.running import load
    from regard.running.demo import pointing, unseen_numbers

    check_output_path(out)
    click.echo("1. Train: English number names into German, on built-in data.")
    if (run / "manifest.json").is_file():
        click.echo(f"   {run} is trained already; remove it to train again.")
    else:
        train_or_resume(run)
    loaded = load(run)
    examples = unseen_numbers(loaded, 1000)
    answers = loaded.translate([example.source_text for example in examples])
    right = [a.output == e.target_text for a, e in zip(answers, examples, strict=True)]
    click.echo(f"   exact match on {len(right):,} unseen numbers: {sum(right) / len(right):.1%}")

    click.echo("\n2. Run: numbers it has never seen.")
    for example, answer in list(zip(examples, answers, strict=True))[:4]:
        click.echo(f"   {example.number:>11,}  {answer.input} → {answer.output}")

    click.echo("\n3. Look: each row is a piece of the answer, each column a word it may read.")
    looks = loaded.look("two hundred and forty-one thousand and five")
    looks.print()
    looks.save(out)
    share = pointing(loaded, examples[:200])
    click.echo(f"   the strongest weight falls on a word it translates: {share:.1%} of the time")

    click.echo(f"\nThe picture is in {out}. Try next:")
    click.echo(f'   regard translate {run} "nine hundred and ninety-nine"')
    click.echo("   regard lecture         sixteen worked examples")
    click.echo("   regard recipes         what else can be trained")
