"""What a recipe says, as frozen dataclasses; `training.recipe` reads and checks the file.

The sections that belong to one room are written there: `data.config`, `text.config`,
`decoding.config`. [model] and [task] hold the settings of the model and the task they name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from regard.data.config import DataConfig
from regard.decoding.config import DecodingConfig
from regard.text import TextConfig

ScheduleKind = Literal[
    "constant", "inverse-square-root", "cosine", "plateau", "decay", "one-cycle", "linear"
]
COUNTS = (
    *("epochs", "steps", "batch", "tokens", "length", "accumulate", "keep", "patience"),
    *("evaluate_every", "save_every", "log_every"),
)


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig:
    """[training.schedule]: `kind`, and the numbers that kind uses."""

    kind: ScheduleKind = "constant"  # how the rate goes on from `rate`
    warmup: int = 0  # steps over which the rate rises from 0 (all kinds)
    steps: int | None = None  # cosine, linear, one-cycle: where it ends; training.steps if left out
    floor: float = 0.0  # cosine, linear, plateau: the least share of the rate
    factor: float = 0.5  # decay, plateau: what the rate is multiplied by
    after: int = 4  # decay: epochs before the first cut; plateau: evaluations without gain
    peak: float = 0.3  # one-cycle: the share of the steps at which the rate is highest

    def __post_init__(self) -> None:
        if self.warmup < 0:
            raise ValueError(f"warmup ({self.warmup}) must be 0 or more")
        if not 0 < self.factor <= 1:
            raise ValueError(f"factor ({self.factor}) must be above 0 and at most 1")
        if not 0 < self.peak < 1:
            raise ValueError(f"peak ({self.peak}) must lie between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How long, how much at once, and with what steps."""

    feed: str | None = None  # how examples become batches; the task's first way if left out
    epochs: int | None = None  # one of these two says how long
    steps: int | None = None
    batch: int = 32  # rows at once (columns, windows, packed)
    tokens: int = 4096  # tokens at once (sentences)
    length: int = 64  # positions at once (columns, windows, packed)
    accumulate: int = 1  # batches that make one step
    optimizer: Literal["adamw", "adam", "sgd"] = "adamw"
    rate: float = 1e-3  # the highest, where a schedule changes it
    betas: tuple[float, float] = (0.9, 0.999)  # adam, adamw
    epsilon: float = 1e-8  # adam, adamw
    momentum: float = 0.0  # sgd
    weight_decay: float = 0.0
    clip: float | None = None  # the largest norm of all gradients together
    label_smoothing: float = 0.0  # the share of each target that goes to all words alike
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)  # a section of its own
    evaluate_every: int | None = None  # steps; every epoch if left out
    save_every: int | None = None  # steps; at every evaluation if left out
    log_every: int = 50  # steps
    keep: int = 2  # checkpoints, the newest ones
    average: int = 0  # weights of the last so many checkpoints, averaged at the end
    ema: float = 0.0  # what a moving average of the weights keeps of itself at each step
    patience: int | None = None  # evaluations without gain before stopping early
    restore_best: bool = True  # end with the weights of the best evaluation
    precision: Literal["fp32", "bf16"] = "fp32"
    compile: bool = False  # by torch.compile
    checkpointing: bool = False  # activations are computed again, which saves memory
    sharding: Literal["none", "fsdp"] = "none"  # of several processes, under torchrun
    tensorboard: bool = False  # write the record for it, too
    # texts that are looked at with every evaluation, or pairs [source, target]
    probes: list[str | list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("one of epochs and steps must be given, and not both")
        for name in COUNTS:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} ({value}) must be 1 or more")
        for name in ("rate", "momentum", "weight_decay", "clip", "average"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"{name} ({value}) must be 0 or more")
        for name in ("ema", "label_smoothing"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} ({getattr(self, name)}) must be at least 0 and below 1")
        if self.average > self.keep:
            raise ValueError(f"average ({self.average}) needs as many in keep ({self.keep})")
        for probe in self.probes:
            if isinstance(probe, list) and len(probe) != 2:
                raise ValueError(f"probes ({probe!r}) must be texts, or [source, target]")


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """What a run is judged by, and what to expect of this recipe on two cores."""

    batch: int = 16  # rows at once
    select: str | None = None  # the metric that chooses the best weights; the task's own if None
    expected: dict[str, float] = field(default_factory=dict)  # metric → score
    minutes: float | None = None  # of training
    memory_mb: float | None = None  # at its peak
    note: str = ""  # why the score is a target, where it was not measured


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything a run depends on, but for what lies in its data files."""

    task: dict[str, Any]  # `kind`, and the settings of that task
    model: dict[str, Any]  # `name`, and the settings of that model
    training: TrainingConfig
    data: DataConfig = field(default_factory=DataConfig)
    text: TextConfig = field(default_factory=TextConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    seed: int = 1
    name: str = ""

    def __post_init__(self) -> None:
        for section, key in (("task", "kind"), ("model", "name")):
            value = getattr(self, section).get(key)
            if value is None:
                raise ValueError(f"{section}.{key} is missing: which {section} is it?")
            if not isinstance(value, str):
                raise ValueError(f"{section}.{key} ({value!r}) must be a string")
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"seed ({self.seed}) must be 0 or more and below 2^63")
