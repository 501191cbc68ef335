"""The result of every metric: a number and how it was made."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Score:
    """The value of a metric, and a signature of how it was computed.

    accuracy, f1, exact_match, aer and pointing are shares from 0 to 1; bleu and chrf are on
    sacrebleu's scale from 0 to 100; loss is in nats, bits in bits.
    """

    name: str  # one of catalog.METRICS
    value: float
    signature: str  # what a stranger needs to make it again: "average:macro|classes:2"
    details: dict[str, float] = field(default_factory=dict)  # the numbers it was made from

    def __str__(self) -> str:
        return f"{self.name} {self.value:.4g} | {self.signature}"
