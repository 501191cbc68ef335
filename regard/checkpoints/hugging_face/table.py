"""Tables of names, theirs beside ours: all that one architecture differs in from the next.

A table reads both ways. `settings` and `weights` name what we call a thing and what Hugging Face
calls it; importing and exporting follow from that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

Settings = dict[str, Any]
LAYER = "{}"  # in a name: the number of a layer
MAX_NAMES = 12  # in a message


@dataclass(frozen=True)
class Setting:
    """One setting of a model under two names.

    `default` is what their code assumes where a config.json says nothing. `values` are theirs →
    ours where they are spelled otherwise; the first of several that mean the same is written.
    `otherwise` says what counts where ours is None.
    """

    ours: str
    theirs: str
    default: Any = None
    values: Mapping[Any, Any] | None = None
    aliases: tuple[str, ...] = ()  # older names in their files
    otherwise: Callable[[Mapping[str, Any]], Any] | None = None

    def read(self, config: Mapping[str, Any]) -> Any:
        """Our value for what a config.json says."""
        names = (self.theirs, *self.aliases)
        name = next((each for each in names if each in config), self.theirs)
        value = config.get(name, self.default)
        if self.values is not None:
            if not isinstance(value, str | bool | None) or value not in self.values:
                known = ", ".join(map(str, self.values))
                raise ValueError(f"{name} ({_show(value)}) must be one of {known}")
            return self.values[value]
        if not _is_like(value, self.default):
            kind = "true or false" if isinstance(self.default, bool) else "a number"
            raise ValueError(f"{name} ({_show(value)}) must be {kind}")
        return value

    def write(self, settings: Mapping[str, Any]) -> Any:
        """Their value for a setting of ours."""
        value = settings[self.ours]
        if value is None and self.otherwise is not None:
            value = self.otherwise(settings)
        if self.values is None:
            return value
        found = [theirs for theirs, ours in self.values.items() if ours == value]
        if not found:
            known = ", ".join(map(str, self.values.values()))
            raise ValueError(f"{self.ours} ({value!r}) has no name there; these have: {known}")
        return found[0]


@dataclass(frozen=True)
class Weight:
    """One weight of ours, and what it is called in their files.

    Several names are the pieces of ours, one below the other. `transposed` ones are stored
    (in, out). `prefixed` ones stand under the table's prefix in models with a head.
    """

    ours: str
    theirs: tuple[str, ...]
    transposed: bool = False
    prefixed: bool = True

    def shape_of_piece(self, shape: torch.Size) -> tuple[int, ...]:
        """The shape each of their pieces must have for ours of this shape."""
        piece = (shape[0] // len(self.theirs), *shape[1:])
        return piece[::-1] if self.transposed else piece

    def join(self, pieces: list[Tensor]) -> Tensor:
        turned = [piece.mT if self.transposed else piece for piece in pieces]
        return turned[0] if len(turned) == 1 else torch.cat(turned)

    def split(self, weight: Tensor) -> list[Tensor]:
        pieces = weight.chunk(len(self.theirs))
        return [piece.mT if self.transposed else piece for piece in pieces]


def layer(
    ours: str, *theirs: str, transposed: bool = False, prefixed: bool = True
) -> tuple[Weight, Weight]:
    """Matrix and bias of a layer; their matrix may be stored (in, out)."""
    weights, biases = (tuple(f"{each}.{part}" for each in theirs) for part in ("weight", "bias"))
    return (
        Weight(f"{ours}.weight", weights, transposed, prefixed),
        Weight(f"{ours}.bias", biases, prefixed=prefixed),
    )


@dataclass(frozen=True)
class Architecture:
    """One of their classes: the task it does here, and how a recipe for it would read.

    `settings` of ours follow from the class and not from its config.
    """

    name: str
    task: str
    recipe: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    prefixed: bool = True  # whether the names of the body stand under the prefix
    labelled: bool = False  # whether it tells classes apart, which its config names


@dataclass(frozen=True)
class Table:
    """Everything about one family of models, theirs beside ours."""

    model: str  # as our catalog has it
    model_type: str  # as their config.json has it
    architectures: tuple[Architecture, ...]
    default: str  # the architecture of a config that names none
    prefix: str  # of the body's names, where there is a head
    settings: tuple[Setting, ...]
    weights: tuple[Weight, ...]
    required: Mapping[str, Any] = field(default_factory=dict)  # theirs: no other value is done here
    ours_only: Mapping[str, Any] = field(default_factory=dict)  # ours: no other value is done there
    ignored: tuple[str, ...] = ()  # tensors of theirs that are no weights
    heads: Mapping[str, str] = field(default_factory=dict)  # our setting → a tensor that shows it
    copies: Mapping[str, str] = field(default_factory=dict)  # a tensor → the one it repeats
    tied: tuple[str, str, str] | None = None  # setting of ours, their output weight, their table
    respelled: Mapping[str, str] = field(default_factory=dict)  # endings of older files
    marked: bool = False  # whether texts stand between [CLS] and [SEP]

    # From theirs to ours

    def read_settings(self, config: Mapping[str, Any]) -> Settings:
        """Our settings for a config.json."""
        for name, wanted in self.required.items():
            if config.get(name, wanted) != wanted:
                raise ValueError(f"{name} ({_show(config[name])}) must be {wanted!r} here")
        return {setting.ours: setting.read(config) for setting in self.settings}

    def find(self, name: str | None = None) -> Architecture | None:
        """Their class of this name; the default if none is named."""
        wanted = self.default if name is None else name
        return next((each for each in self.architectures if each.name == wanted), None)

    def read_names(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The tensors by the names of the table: without prefix, in the newest spelling, and
        without those that are no weights."""
        found = {}
        for name, tensor in tensors.items():
            plain = name.removeprefix(self.prefix)
            for old, new in self.respelled.items():
                plain = plain.removesuffix(old) + new if plain.endswith(old) else plain
            if any(_matches(pattern, plain) for pattern in self.ignored):
                continue
            if plain in found:
                raise ValueError(f"{plain[:160]} is there twice, with {self.prefix!r} and without")
            found[plain] = tensor
        for copy, original in self.copies.items():
            if copy in found and not _are_equal(found[copy], found.get(original, found[copy])):
                raise ValueError(f"{copy} differs from {original}, and is its copy here")
            if copy in found:
                found[original] = found.pop(copy)
        return found

    def find_heads(self, tensors: Mapping[str, Tensor]) -> Settings:
        """Which parts a model has that not every one has, by what is in its file."""
        return {setting: name in tensors for setting, name in self.heads.items()}

    def untie(
        self, settings: Settings, tensors: Mapping[str, Tensor]
    ) -> tuple[Settings, dict[str, Tensor]]:
        """Settings and tensors that agree on whether output and embedding are tied.

        A config may say that they are while the file has two that differ; then they are not. Of
        two that are alike one is left out.
        """
        if self.tied is None or not settings[self.tied[0]]:
            return settings, dict(tensors)
        setting, output, table = self.tied
        if output not in tensors:
            return settings, dict(tensors)
        if table in tensors and not _are_equal(tensors[output], tensors[table]):
            return {**settings, setting: False}, dict(tensors)
        rest = {name: tensor for name, tensor in tensors.items() if name != output}
        return settings, {**rest, table: tensors[output]}

    def convert(
        self, tensors: Mapping[str, Tensor], wanted: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """Weights by our names, as far as the tensors have what is wanted."""
        found = {}
        for name in wanted:
            rule, names = self._find(name)
            if all(each in tensors for each in names):
                found[name] = rule.join([tensors[each] for each in names])
        return found

    def check(
        self, tensors: Mapping[str, Tensor], wanted: Mapping[str, Tensor], where: str
    ) -> None:
        """Refuse tensors that are not those of the wanted weights, and name each as it is there."""
        expected: set[str] = set()
        missing, wrong = [], []
        for name, weight in wanted.items():
            rule, names = self._find(name)
            expected.update(names)
            shape = rule.shape_of_piece(weight.shape)
            missing += [each for each in names if each not in tensors]
            wrong += [
                f"{each} is {_describe(tensors[each])} and should be {shape}"
                for each in names
                if each in tensors and not _fits(tensors[each], shape)
            ]
        surplus = [name for name in tensors if name not in expected]
        complaints = [_list(missing, "missing"), _list(surplus, "surplus"), _list(wrong, "wrong")]
        if any(complaints):
            raise ValueError(f"{where}: {'; '.join(filter(None, complaints))}")

    # From ours to theirs

    def choose(self, task: str, settings: Settings) -> Architecture:
        """Their class for a model of ours."""
        for each in self.architectures:
            fits = all(settings[name] == value for name, value in each.settings.items())
            if each.task == task and fits:
                return each
        raise ValueError(f"{self.model_type} has no class for the task {task!r}")

    def write_settings(self, settings: Settings) -> Settings:
        """A config.json for settings of ours."""
        for name, wanted in self.ours_only.items():
            if settings[name] != wanted:
                raise ValueError(
                    f"{name} ({settings[name]!r}) has no counterpart in {self.model_type}, "
                    f"which has {wanted!r}"
                )
        return {setting.theirs: setting.write(settings) for setting in self.settings}

    def write_weights(
        self, weights: Mapping[str, Tensor], architecture: Architecture
    ) -> dict[str, Tensor]:
        """Their tensors for weights of ours."""
        tensors: dict[str, Tensor] = {}
        for name, weight in weights.items():
            rule, names = self._find(name)
            prefix = self.prefix if rule.prefixed and architecture.prefixed else ""
            pieces = rule.split(weight)
            tensors |= {prefix + each: piece for each, piece in zip(names, pieces, strict=True)}
        return tensors

    def fill_biases(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The weights of ours with zeros for biases that their models have and this one has not."""
        filled = dict(weights)
        for name, weight in weights.items():
            bias = name.removesuffix("weight") + "bias"
            if bias != name + "bias" and any(_matches(rule.ours, bias) for rule in self.weights):
                filled.setdefault(bias, weight.new_zeros(weight.shape[0]))
        return filled

    def _find(self, name: str) -> tuple[Weight, list[str]]:
        """What is said of a weight of ours, and its names in their files."""
        for rule in self.weights:
            layer = match_layer(rule.ours, name)
            if layer is not None:
                return rule, [each.replace(LAYER, layer) for each in rule.theirs]
        raise ValueError(f"{name} has no counterpart in {self.model_type}")


def match_layer(pattern: str, name: str) -> str | None:
    """The number of the layer for which a pattern is this name; "" for one without layers."""
    before, numbered, after = pattern.partition(LAYER)
    if not numbered:
        return "" if pattern == name else None
    fits = name.startswith(before) and name.endswith(after)
    number = name[len(before) : len(name) - len(after)] if fits else ""
    return number if re.fullmatch(r"0|[1-9][0-9]{0,8}", number) else None


def _matches(pattern: str, name: str) -> bool:
    return match_layer(pattern, name) is not None


def _is_like(value: Any, default: Any) -> bool:
    """Whether a value may stand where the default stands; None stands for a number."""
    if isinstance(default, bool):
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    whole = isinstance(default, int)
    return isinstance(value, int if whole else int | float) or (value is None and default is None)


def _fits(tensor: Tensor, shape: tuple[int, ...]) -> bool:
    return tensor.is_floating_point() and tuple(tensor.shape) == shape


def _are_equal(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and torch.equal(one, other)


def _describe(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {str(tuple(tensor.shape))[:80]}"


def _show(value: Any) -> str:
    return repr(value)[:80]


def _list(names: Iterable[str], what: str) -> str:
    """`missing tensors: a, b, and 3 more`, nothing where there are none."""
    listed = [name[:160] for name in names]
    if not listed:
        return ""
    more = [f"and {len(listed) - MAX_NAMES} more"] if len(listed) > MAX_NAMES else []
    return f"{what} tensors: {', '.join(listed[:MAX_NAMES] + more)}"
