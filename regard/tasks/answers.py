"""What was asked of a run, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Candidate(NamedTuple):
    """One possible answer."""

    output: Any  # a text, a label, a list of numbers
    score: float
    text: str = ""  # the input with the output behind it, for those who continue it


@dataclass(frozen=True)
class Answer:
    """What was asked, and what came of it: the best, and the others if they were asked for."""

    input: str
    hypotheses: tuple[Candidate, ...]
    verb: str = field(default="", repr=False)
    """What was asked for, with which settings, and the number that its draws follow from: enough to
    decode it again under watch, which is done when somebody wants to look."""
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    number: int = field(default=0, repr=False)

    @classmethod
    def empty(cls, text: str) -> Answer:
        """The answer to nothing."""
        return cls(text, (Candidate("", 0.0),))

    @property
    def output(self) -> Any:
        return self.hypotheses[0].output

    @property
    def score(self) -> float:
        return self.hypotheses[0].score

    @property
    def text(self) -> str:
        """The input with the output behind it, for those who continue it."""
        return self.hypotheses[0].text

    def as_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"input": self.input, "output": self.output, "score": self.score}
        if len(self.hypotheses) > 1:
            fields["hypotheses"] = [
                {"output": each.output, "score": each.score} for each in self.hypotheses
            ]
        return fields
