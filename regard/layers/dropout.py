"""Dropout as a module."""

from torch import Tensor, nn

from regard.attention.dropout import drop


class Dropout(nn.Module):
    """y = x ⊙ m / (1 − rate), where m is 0 with probability `rate`, else 1; y = x in evaluation

    No unit can rely on another's being there, so each learns to be useful by itself. `drop` says
    where the random numbers come from.

    Srivastava et al. (2014), section 4.
    """

    def __init__(self, rate: float):
        super().__init__()
        if not 0.0 <= rate < 1.0:
            raise ValueError(f"rate ({rate}) must be at least 0 and below 1")
        self.rate = rate

    def forward(self, inputs: Tensor) -> Tensor:
        return drop(inputs, self.rate) if self.training else inputs

    def extra_repr(self) -> str:
        return f"{self.rate}"
