"""What training tells while it runs: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import os
import time
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar


class Progress:
    """Listens to a training run."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        columns = (
            TextColumn("step {task.completed:.0f}/{task.total:.0f}"),
            BarColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
        )
        self.bar = Bar(*columns, console=console) if console.is_terminal else None
        self.first = os.environ.get("RANK", "0") == "0"  # of several processes, one speaks
        self.task: Any = None
        self.before = (time.monotonic(), 0)

    def __enter__(self) -> Progress:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def tell(self, event: str, values: dict[str, Any]) -> None:
        if not self.first:
            return
        if event == "note":
            self.say(values["text"])
        elif event == "train":
            self.step(values)
        elif event == "valid":
            known = ("loss", "perplexity", "score", "exact_match")
            shown = {k: v for k, v in values.items() if k in known}
            figures = "  ".join(f"{k} {v:.4g}" for k, v in shown.items())
            self.say(f"step {values['step']}  valid  {figures}")

    def step(self, values: dict[str, Any]) -> None:
        now, tokens = time.monotonic(), values["tokens"]
        speed = tokens / max(now - self.before[0], 1e-9)
        self.before = (now, 0)
        loss = values["loss"]
        figures = f"loss {loss:.3f}  ppl {math.exp(min(loss, 50)):.1f}  {speed:,.0f} tokens/s"
        if self.bar is None:
            left = (values["total"] - values["step"]) * values["seconds"] / max(values["step"], 1)
            click.echo(
                f"step {values['step']}/{values['total']}  {figures}  {left / 60:.1f} min left",
                err=True,
            )
            return
        if self.task is None:
            self.task = self.bar.add_task("train", total=values["total"], figures="")
        self.bar.update(self.task, completed=values["step"], figures=figures)

    def say(self, line: str) -> None:
        if self.bar is not None:
            self.bar.console.print(line, highlight=False)
        else:
            click.echo(line, err=True)
