"""The record of a run in TensorBoard, for those who have it installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.training.loop import Report


def report_to_tensorboard(folder: Path, report: Report) -> Report:
    """The report that also writes to TensorBoard."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ValueError(
            "training.tensorboard is on, but TensorBoard is not installed: pip install tensorboard"
        ) from None
    writer = SummaryWriter(str(folder / "tensorboard"))

    def report_to_both(event: str, values: dict[str, Any]) -> None:
        floats = {name: value for name, value in values.items() if isinstance(value, float)}
        for name, value in floats.items():
            writer.add_scalar(f"{event}/{name}", value, values["step"])
        if floats:
            writer.flush()
        report(event, values)

    return report_to_both
