"""Which numbers need more than half precision, and how they get it.

Half precision is for storing vectors and multiplying them. Scores, lengths and positions need more:
float16 ends at 65,504, and bfloat16 cannot tell 1,000 from 1,001.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

HALF_DTYPES = (torch.float16, torch.bfloat16)


def at_least_single(tensor: Tensor) -> Tensor:
    """The same numbers in float32, or as they are if they have as much or more."""
    return tensor.float() if tensor.dtype in HALF_DTYPES else tensor


def autocast_dtype(device: torch.device) -> torch.dtype | None:
    """What autocast rounds vectors to before it multiplies them; None where it is off."""
    kind = device.type
    if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
        return torch.get_autocast_dtype(kind)
    return None


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Switches autocast off where it is on, since it would round what was widened."""
    if autocast_dtype(device) is None:
        return nullcontext()
    return torch.autocast(device.type, enabled=False)
