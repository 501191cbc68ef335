"""Competitors taking turns, and a table of what came of it."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor


def race(
    competitors: Sequence[Callable[[], object]],
    seconds: float = 3.0,
    rounds: int = 7,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """The median time of each, in milliseconds, taking turns for `seconds`, `rounds` at the least.

    The order turns around every round, so that whatever one leaves in the cache helps each alike.
    On a machine that others use, `clock` is better `time.process_time`, and threads one.
    """
    warm = time.perf_counter() + seconds / 4  # threads woken, memory laid out, clock speed settled
    while time.perf_counter() < warm:
        for run in competitors:
            run()
    times: list[list[float]] = [[] for _ in competitors]
    order = list(range(len(competitors)))
    end = time.perf_counter() + seconds
    while len(times[0]) < rounds or time.perf_counter() < end:
        for index in order:
            start = clock()
            competitors[index]()
            times[index].append(clock() - start)
        order.reverse()
    return [1000 * statistics.median(each) for each in times]


CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
"""What time is told by; that of the CPU is for one thread on a machine others use."""


def race_apart(
    module: str, names: Sequence[str], threads: int, rounds: int = 25, clock: str = "wall"
) -> list[float]:
    """`race` for competitors that want a process of their own: what one of them tells the C library
    about memory would help the others, too.

    Or what they leave behind: after another library's threads, OpenMP's sleep between two pieces of
    work, and its steps take half as long again.

    Each runs as `python -m module --compete name threads` and answers by `compete`; they take turns
    of a few steps, and whoever waits sleeps. A clock that is not the wall's is a word more.
    """
    command = [sys.executable, "-m", module, "--compete"]
    other_clock = [] if clock == "wall" else [clock]
    runners = [
        subprocess.Popen(
            [*command, name, str(threads), *other_clock],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    times: list[list[float]] = [[] for _ in names]
    for turn in range(rounds + 2):  # two to get warm
        for place, runner in enumerate(runners):
            took = _one_turn(runner)
            if turn >= 2:
                times[place].append(took)
        runners.reverse()
        times.reverse()
    if rounds % 2:
        times.reverse()
        runners.reverse()
    for runner in runners:
        runner.communicate("")
    return [statistics.median(each) for each in times]


def _one_turn(runner: subprocess.Popen[str]) -> float:
    assert runner.stdin is not None and runner.stdout is not None
    runner.stdin.write("go\n")
    runner.stdin.flush()
    took = float(runner.stdout.readline())
    time.sleep(0.02)  # its threads go to sleep before the next one's wake up
    return took


def compete(
    step: Callable[[], object], steps: int = 4, clock: str = "wall", *, wake: bool = True
) -> None:
    """Answer every line of the input with the milliseconds a step took, `steps` of them.

    One more comes before, unless waking up is nothing to a step that takes seconds.
    """
    tell = CLOCKS[clock]
    for _ in sys.stdin:
        if wake:
            step()  # awake again, and its memory back in the cache
        start = tell()
        for _ in range(steps):
            step()
        print(1000 * (tell() - start) / steps, flush=True)


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, ours, theirs, and the bar."""

    what: str
    ours: str
    theirs: str
    ratio: str
    bar: str
    reached: bool


def compared(
    what: str, ours: float, theirs: float, *, at_most: float | None = None, at_least: float = 0.0
) -> Row:
    """Times in milliseconds. `at_most` bounds ours / theirs, `at_least` bounds theirs / ours."""
    if at_most is not None:
        ratio, bar = ours / theirs, f"≤ {at_most:g} × its time"
        reached = ratio <= at_most
    else:
        ratio, bar = theirs / ours, f"≥ {at_least:g} × as fast"
        reached = ratio >= at_least
    return Row(what, f"{ours:.2f} ms", f"{theirs:.2f} ms", f"{ratio:.2f} ×", bar, reached)


def rate_row(what: str, ours: float, theirs: float, unit: str, at_least: float) -> Row:
    """Speeds: so many of a unit a second."""
    ratio = ours / theirs
    bar = f"≥ {at_least:g} × as fast"
    return Row(
        what, f"{ours:,.0f} {unit}", f"{theirs:,.0f}", f"{ratio:.2f} ×", bar, ratio >= at_least
    )


def below(what: str, ours: float, limit: float, unit: str, theirs: str = "") -> Row:
    return Row(what, f"{ours:.1f} {unit}", theirs, "", f"< {limit:g} {unit}", ours < limit)


def print_table(title: str, rows: Sequence[Row]) -> None:
    table = Table(title=title, title_justify="left", pad_edge=False)
    for name in ("what", "regard", "peer", "ratio", "bar", ""):
        table.add_column(name, justify="left" if name in ("what", "bar") else "right")
    for row in rows:
        mark = "reached" if row.reached else "MISSED"
        table.add_row(row.what, row.ours, row.theirs, row.ratio, row.bar, mark)
    Console(width=118).print(table)


def forward(run: Callable[[], Tensor]) -> Callable[[], object]:
    """Work that computes without gradients."""

    def work() -> None:
        with torch.no_grad():
            run()

    return work


def both_ways(run: Callable[[], Tensor]) -> Callable[[], object]:
    """Work that computes and goes back through its graph."""

    def work() -> None:
        context = run()
        context.backward(torch.ones_like(context))

    return work
