"""`regard recipes`: what can be trained by name."""

from __future__ import annotations

import tomllib

import click


@click.command()
@click.argument("name", required=False)
def recipes(name: str | None) -> None:
    """List the shipped recipes, or print one."""
    from regard.training.shipped import SHIPPED, find_recipe

    if name is not None:
        click.echo(find_recipe(name).read_text(encoding="utf-8"), nl=False)
        return
    for path in sorted(SHIPPED.glob("*.toml")):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        expected = content["evaluation"]
        score = ", ".join(f"{k} {v:g}" for k, v in expected["expected"].items())
        score += " (target)" if expected.get("note") else ""
        size = f"{expected['minutes']:g} min, {expected['memory_mb']:g} MB"
        click.echo(f"{path.stem:<26} {score:<24} {size:<18} {first_line(path.read_text())}")


def first_line(text: str) -> str:
    """What a recipe says about itself in its first comment."""
    return text.splitlines()[0].removeprefix("# ")
