"""What training tells while it runs: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import time
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from regard.metrics import METRICS


class Progress:
    """Listens to a training run."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        columns = (
            TextColumn("step {task.completed:.0f}/{task.total:.0f}"),
            BarColumn(),
            TextColumn("{task.fields[metrics]}"),
            TimeRemainingColumn(),
        )
        self.bar = Bar(*columns, console=console) if console.is_terminal else None
        self.first = os.environ.get("RANK", "0") == "0"  # of several processes, one speaks
        self.task: Any = None
        self.since = time.monotonic()  # the last line, evaluations left out

    def __enter__(self) -> Progress:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def report(self, event: str, values: dict[str, Any]) -> None:
        if not self.first:
            return
        if event == "begin":
            self.since = time.monotonic()
            self.say(header(values))
        elif event == "note":
            self.say(values["text"])
        elif event == "step":
            self.move(values)
        elif event == "train":
            self.log(values)
        elif event == "valid":
            self.since += values.get("seconds", 0.0)
            self.say(f"step {values['step']}  valid  {show_metrics(values)}")

    def move(self, values: dict[str, Any]) -> None:
        """The bar goes on with every step."""
        if self.bar is None:
            return
        if self.task is None:
            self.task = self.bar.add_task("train", total=values["total"], metrics="")
        self.bar.update(self.task, completed=values["step"], total=values["total"])

    def log(self, values: dict[str, Any]) -> None:
        now, tokens = time.monotonic(), values["tokens"]
        speed = tokens / max(now - self.since, 1e-9)
        self.since = now
        shown = f"{show_metrics(values['metrics'])}  {speed:,.0f} tokens/s"
        if self.bar is None:
            left = (values["total"] - values["step"]) * values["seconds"] / max(values["step"], 1)
            click.echo(
                f"step {values['step']}/{values['total']}  {shown}  {left / 60:.1f} min left",
                err=True,
            )
            return
        self.bar.update(self.task, metrics=shown)

    def say(self, line: str) -> None:
        if self.bar is not None:
            self.bar.console.print(line, highlight=False, markup=False, soft_wrap=True)
        else:
            click.echo(line, err=True)


def show_metrics(values: dict[str, Any]) -> str:
    """loss 1.234  perplexity 3.435, as far as they are metrics; bits say the same as the loss."""
    shown = {name: values[name] for name in METRICS if name in values and name != "bits"}
    return "  ".join(f"{name} {value:.4g}" for name, value in shown.items())


def header(values: dict[str, Any]) -> str:
    """One line about a run that begins: model, size, data, device, folder."""
    parts = [values["model"]]
    if values["parameters"] is not None:
        parts.append(f"{values['parameters']:,} parameters")
    several = f" × {values['processes']}" if values["processes"] > 1 else ""
    parts += [values["data"], f"{values['device']}{several}", f"into {values['folder']}"]
    if values["step"]:
        parts.append(f"from step {values['step']}")
    return "  ".join(parts)
