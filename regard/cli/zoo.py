"""`regard zoo`: trained models that need no training."""

from __future__ import annotations

import json
from dataclasses import asdict

import click


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a model.")
def zoo(as_json: bool) -> None:
    """List trained models; each name stands for a RUN."""
    from regard.running.zoo import list_zoo

    for entry in list_zoo():
        if as_json:
            click.echo(json.dumps(asdict(entry), ensure_ascii=False))
            continue
        score = ", ".join(f"{name} {value:.4g}" for name, value in entry.scores.items())
        size = f"{entry.bytes / 1e6:.1f} MB"
        click.echo(f"{entry.name:<26} {score:<24} {size:>8}  {entry.task}, {entry.model}")
