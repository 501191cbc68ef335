"""The record of a run in TensorBoard, for those who have it installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.training.loop import Tell


def tell_tensorboard(folder: Path, tell: Tell) -> Tell:
    """Tell TensorBoard too whatever is told."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ValueError(
            "training.tensorboard is on, but TensorBoard is not installed: pip install tensorboard"
        ) from None
    writer = SummaryWriter(str(folder / "tensorboard"))

    def tell_both(event: str, values: dict[str, Any]) -> None:
        floats = {name: value for name, value in values.items() if isinstance(value, float)}
        for name, value in floats.items():
            writer.add_scalar(f"{event}/{name}", value, values["step"])
        if floats:
            writer.flush()
        tell(event, values)

    return tell_both
