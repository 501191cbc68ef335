"""Ctrl-C and SIGTERM: finish the step, save, and say so with an exit code."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

STOPPED = 3
"""The exit code of a run that was asked to stop, saved itself, and can be resumed."""


class Signals:
    """Within the `with`, the first signal asks to stop; a second one stops at once.

    Python lets only the main thread listen: elsewhere nothing is changed, and nothing is heard.
    """

    def __init__(self) -> None:
        self.stop_requested = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is not threading.main_thread():
            return self
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self.stop_requested:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        self.stop_requested = True
