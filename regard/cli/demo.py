"""`regard demo`: the best short journey there is."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("look.html"),
    show_default=True,
    help="Where the picture goes: HTML, SVG, PNG, PDF or JSON.",
)
def demo(out: Path) -> None:
    """Train a small attention, run it, look inside it, and check that the look is a cause."""
    import torch

    from regard.lectures.backwards import Backwards, blinded, exact_match, read, train
    from regard.looking import Looks

    torch.manual_seed(1)
    model = Backwards()
    count = sum(parameter.numel() for parameter in model.parameters())
    click.echo(f"1. Train: one attention, {count:,} parameters, learns to read words backwards.")
    for step, loss in train(model):
        if step % 50 == 0:
            click.echo(f"   step {step:>3}   loss {loss:.4f}")
    click.echo(f"   exact match on 1,000 unseen words: {exact_match(model):.1%}")

    click.echo("\n2. Run:")
    for word in ("attention", "transformer", "regard"):
        click.echo(f"   {word} → {read(model, word)[0]}")

    click.echo("\n3. Look: each row is a letter it says, each column a letter it may read.")
    _, look = read(model, "regard")
    looks = Looks([look])
    looks.print()
    looks.save(out)

    click.echo("\n4. Is the look a cause? Every letter now weighs the same (regard.edit):")
    click.echo(f"   exact match falls to {blinded(model):.1%}")
    click.echo(f"\nThe picture is in {out}. Next: `regard lecture`, then `regard lecture aaba`.")
