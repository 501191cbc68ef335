"""Lines in groups, so that they can be answered many at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from queue import Empty, Queue
from threading import Thread

PATIENCE = 0.02  # seconds a pipe may take for the next line before the ones that came are answered


def windows(lines: Iterable[str], most: int) -> Iterator[list[str]]:
    """Groups of `most` lines, the last perhaps smaller."""
    rest = iter(lines)
    while window := list(islice(rest, most)):
        yield window


def waiting_lines(lines: Iterable[str], most: int) -> Iterator[list[str]]:
    """Groups of those lines that have come, one at the least: nobody waits for a full group.

    Somebody who types, or a program that sends the next line after it has read the answer to the
    last, gets an answer at once.
    """
    queue: Queue[str | Exception | None] = Queue(maxsize=most)
    Thread(target=_read, args=(lines, queue), daemon=True).start()
    while True:
        window: list[str] = []
        arrived = queue.get()
        while isinstance(arrived, str):
            window.append(arrived)
            if len(window) == most:
                break
            try:
                arrived = queue.get(timeout=PATIENCE)
            except Empty:
                break
        if window:
            yield window
        if isinstance(arrived, Exception):
            raise arrived
        if arrived is None:
            return


def _read(lines: Iterable[str], queue: Queue[str | Exception | None]) -> None:
    try:
        for line in lines:
            queue.put(line)
        queue.put(None)
    except Exception as error:  # told where the answers are made, not in a thread of its own
        queue.put(error)
