"""A recipe: TOML in, checked dataclasses out.

Unknown keys are refused with their path and the nearest known name. Sizes that follow from the data
are not in it. `regard/recipes/` holds the shipped ones; a path names one of your own.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from regard.checkpoints.reading import check_size, children, parse_toml
from regard.decoding.config import DecodingConfig
from regard.models.catalog import MODELS, entry
from regard.naming import suggest
from regard.text import TextConfig
from regard.training.schedules import ScheduleConfig
from regard.training.shipped import find_recipe

Files = str | list[str] | None
LARGEST_RECIPE = 1 << 16  # tomllib takes seconds for a key of many dots, and minutes for a megabyte
COUNTS = (
    *("epochs", "steps", "batch", "tokens", "length", "accumulate", "keep", "patience"),
    *("evaluate_every", "save_every", "log_every"),
)


@dataclass(frozen=True, kw_only=True)
class TaskConfig:
    kind: Literal["language-model", "translation"]


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Where the text is: files, or a generator that needs none."""

    train: Files = None
    valid: Files = None
    test: Files = None
    format: Literal["text", "tsv", "csv", "jsonl"] = "text"
    columns: list[str | int] | None = None
    root: str | None = None
    unit: Literal["line", "character"] = "line"  # lines ended by </s>, or the text as it stands
    valid_share: float = 0.0  # without data.valid: the last share of data.train
    generator: str | None = None  # e.g. "numbers-german"
    examples: int = 20_000  # how many the generator makes for training
    valid_examples: int = 1_000
    test_examples: int = 1_000
    set: str = ""  # what people call the data, for the message when it is missing
    source: str = ""  # where people get it


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How long, how much at once, and with what steps."""

    feed: Literal["columns", "windows", "sentences", "packed"]
    epochs: int | None = None
    steps: int | None = None
    batch: int = 32  # rows at once (columns, windows, packed)
    tokens: int = 4096  # tokens at once (sentences)
    length: int = 64  # positions at once (columns, windows, packed)
    accumulate: int = 1
    optimizer: Literal["adamw", "adam", "sgd"] = "adamw"
    rate: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    momentum: float = 0.0
    weight_decay: float = 0.0
    clip: float | None = None
    label_smoothing: float = 0.0
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    evaluate_every: int | None = None  # steps; every epoch if left out
    save_every: int | None = None  # steps; at every evaluation if left out
    log_every: int = 50
    keep: int = 2  # checkpoints
    average: int = 0  # weights of the last so many checkpoints, averaged at the end
    ema: float = 0.0
    patience: int | None = None  # evaluations without gain before stopping early
    restore_best: bool = True  # end with the weights of the best evaluation
    precision: Literal["fp32", "bf16"] = "fp32"
    compile: bool = False
    checkpointing: bool = False
    sharding: Literal["none", "fsdp"] = "none"
    tensorboard: bool = False
    probes: list[str] = field(default_factory=list)

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


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """What a run is judged by, and what to expect of this recipe on two cores."""

    batch: int = 16
    expected: dict[str, float] = field(default_factory=dict)
    minutes: float | None = None
    memory_mb: float | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    task: TaskConfig
    model: dict[str, Any]
    training: TrainingConfig
    data: DataConfig = field(default_factory=DataConfig)
    text: TextConfig = field(default_factory=TextConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    seed: int = 1
    name: str = ""

    def __post_init__(self) -> None:
        name = self.model.get("name")
        if name is None:
            raise ValueError("model.name is missing: which model is it?")
        if not isinstance(name, str):
            raise ValueError(f"model.name ({name!r}) must be a string")
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"seed ({self.seed}) must be 0 or more and below 2^63")


def read_recipe(name: str, settings: list[str] | None = None) -> Recipe:
    """A shipped recipe by name, or a TOML file by path, with `a.b=value` overrides."""
    path = find_recipe(name)
    return parse_recipe(path.read_bytes(), path, settings)


def parse_recipe(text: bytes, path: Path, settings: list[str] | None = None) -> Recipe:
    """The recipe that a TOML file holds, with `a.b=value` overrides."""
    check_size(len(text), LARGEST_RECIPE, path)
    content = parse_toml(text, path)
    content.setdefault("name", path.stem)
    apply_settings(content, settings or [])
    check_integers(content, path)
    return checked(content, str(path))


def apply_settings(content: dict[str, Any], settings: list[str]) -> None:
    """Put every `a.b=value` into the content of a recipe."""
    for setting in settings:
        override(content, setting)
    given = {setting.partition("=")[0].strip() for setting in settings}
    training = content.get("training")
    if isinstance(training, dict):
        # A length in steps replaces one in epochs, and the other way round.
        for one, other in (("steps", "epochs"), ("epochs", "steps")):
            if f"training.{one}" in given and f"training.{other}" not in given:
                training.pop(other, None)
    data = content.get("data")
    if isinstance(data, dict):
        for key in ("train", "valid", "test", "root"):
            if f"data.{key}" in given:
                data[key] = _from_here(data[key])


def _from_here(files: Any) -> Any:
    """A path that a user types is relative to where they are, not to where the recipe is."""
    if isinstance(files, list):
        return [_from_here(file) for file in files]
    if not isinstance(files, str) or files == "-":
        return files
    return str(Path(files).absolute())


def check_integers(value: Any, path: Path) -> None:
    """Refuse whole numbers of more than 64 bits: TOML has none, and neither has torch."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"{path}: {show(value)} has more than the 64 bits of a whole number")
    for inner in children(value):
        check_integers(inner, path)


def override(content: dict[str, Any], setting: str) -> None:
    """Put `a.b=value` into the content; the value is TOML, or a string if it is not."""
    path, equals, text = setting.partition("=")
    *above, last = path.strip().split(".")
    if not equals or not last:
        raise ValueError(f"--set {setting!r} must be like training.steps=100")
    place = content
    for part in above:
        place = place.setdefault(part, {})
        if not isinstance(place, dict):
            raise ValueError(f"--set {setting!r}: {part} is a value, not a section")
    try:
        place[last] = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        place[last] = text
    except RecursionError:
        raise ValueError(f"--set {path}: the value is nested too deeply") from None


def checked(content: dict[str, Any], where: str) -> Recipe:
    """The content as a `Recipe`, or a ValueError that names the key, its value and the reason."""
    recipe = check_as(Recipe, content, where)
    found = entry(recipe.model["name"])
    if found.task != recipe.task.kind:
        able = [name for name, each in MODELS.items() if each.task == recipe.task.kind]
        raise ValueError(
            f"{where}: model.name ({recipe.model['name']!r}) does {found.task}, and task.kind is "
            f"{recipe.task.kind!r}; models for it: {', '.join(able)}"
        )
    hints = get_type_hints(found.config)
    model = {key: _typed(hints, key, value, where) for key, value in recipe.model.items()}
    return replace(recipe, model=model)


def _typed(hints: dict[str, Any], key: str, value: Any, where: str) -> Any:
    """A setting of the model as its config has it; one that is not known is not ours to refuse."""
    _refuse_boolean(hints.get(key, Any), value, f"{where}: model.{key}")
    try:
        return TypeAdapter(hints.get(key, Any)).validate_python(value)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise ValueError(f"{where}: model.{key} ({show(value)}): {reason}") from None


def _refuse_boolean(hint: Any, value: Any, where: str) -> None:
    """TOML's `true` is no number, though Python and pydantic would count it as 1."""
    if isinstance(value, bool) and hint is not Any and bool not in (hint, *get_args(hint)):
        raise ValueError(f"{where} ({str(value).lower()}) must not be true or false")


def _refuse_booleans(kind: type[Any], content: Any, where: str) -> None:
    if not isinstance(content, dict):
        return
    for key, hint in get_type_hints(kind).items():
        value = content.get(key)
        if isinstance(value, dict) and is_dataclass(hint) and isinstance(hint, type):
            _refuse_booleans(hint, value, f"{where}{key}.")
        else:
            _refuse_boolean(hint, value, f"{where}{key}")


def check_as(kind: type[Any], content: dict[str, Any], where: str) -> Any:
    _refuse_booleans(kind, content, f"{where}: ")
    adapter = TypeAdapter(_strict(kind))
    try:
        return adapter.validate_python(content)
    except ValidationError as error:
        raise ValueError(f"{where}: {_told(kind, error)}") from None


def _strict(kind: type[Any]) -> type[Any]:
    """Have pydantic refuse unknown keys, here and in the sections below."""
    kind.__pydantic_config__ = ConfigDict(extra="forbid")
    for hint in get_type_hints(kind).values():
        if is_dataclass(hint) and isinstance(hint, type):
            _strict(hint)
    return kind


def _told(kind: type[Any], error: ValidationError) -> str:
    """The first complaint, in the words of the recipe."""
    first = error.errors()[0]
    path = [str(part) for part in first["loc"]]
    name = ".".join(path)
    name = name if name.isprintable() and len(name) <= 100 else show(name)
    if first["type"] == "unexpected_keyword_argument" or first["type"] == "extra_forbidden":
        known = _known(kind, path[:-1])
        return f"unknown key {name}; {suggest(path[-1], known)}"
    if first["type"] in ("missing", "missing_argument"):
        return f"{name} is missing"
    message = first["msg"].removeprefix("Value error, ")
    value = first.get("input")
    told = "" if is_dataclass(value) or isinstance(value, dict) else f" ({show(value)})"
    return f"{name}{told}: {message}" if name else message


def show(value: Any) -> str:
    """A value as an error shows it, which is one line and not a page."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:99]}…"


def _known(kind: type[Any], path: list[str]) -> list[str]:
    for part in path:
        inner = get_type_hints(kind).get(part)
        if not (is_dataclass(inner) and isinstance(inner, type)):
            return []
        kind = inner
    return [f.name for f in fields(kind)]
