"""Weights from a file into a model that fits them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.checkpoints.memory import check_memory
from regard.checkpoints.reading import Folder
from regard.models.outline import build_unfilled, count_parameter_bytes, count_table_bytes, outline

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
MAX_DIFFERENCES_NAMED = 3


def load_model(make: Callable[[], nn.Module], files: Folder, name: str) -> nn.Module:
    """The model that `make` builds, with the weights of a file."""
    weights, where = files.tensors(name), f"{files.path}: {name}"

    def fit(skeleton: nn.Module) -> dict[str, Tensor]:
        filled = fill_tied(weights, skeleton)
        check_weights(filled, skeleton.state_dict(), where)
        return filled

    return build_from(make, fit, len(weights), str(files.path))


def build_from(
    make: Callable[[], nn.Module],
    fit: Callable[[nn.Module], Mapping[str, Tensor]],
    stored: int,
    where: str,
) -> nn.Module:
    """The model that `make` builds, with the weights that `fit` finds for its outline among
    `stored` tensors.

    It is built only when its outline fits them, and no random number is drawn for weights that
    would be overwritten.
    """
    # A parameter may be registered more often than it is stored: once more when it is tied, and
    # before it is left out.
    skeleton = outline(make, max_parameters=100 + 4 * stored)
    weights = fit(skeleton)
    # Tables are worked out in double precision, by way of a few copies.
    check_memory(count_parameter_bytes(skeleton) + 8 * count_table_bytes(skeleton), where)
    model = build_unfilled(make)
    model.load_state_dict(weights)
    return model


def drop_tied(weights: Mapping[str, Tensor], model: nn.Module) -> dict[str, Tensor]:
    """The weights without those that the model has under an earlier name already."""
    later = {name for _, *others in shared_names(model) for name in others}
    return {name: weight for name, weight in weights.items() if name not in later}


def fill_tied(weights: Mapping[str, Tensor], model: nn.Module) -> dict[str, Tensor]:
    """The weights with all names of those that are stored under one of their names."""
    filled = dict(weights)
    for names in shared_names(model):
        stored = next((name for name in names if name in weights), None)
        if stored is not None:
            filled = {**dict.fromkeys(names, weights[stored]), **filled}
    return filled


def shared_names(model: nn.Module) -> list[list[str]]:
    """The names of each parameter that has several, as a tied table has."""
    names: dict[Tensor, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(parameter, []).append(name)
    return [each for each in names.values() if len(each) > 1]


def load_arrays(files: Folder, name: str) -> dict[str, NDArray[Any]]:
    """The tensors of a file as NumPy has them."""
    try:
        return {key: tensor.numpy() for key, tensor in files.tensors(name).items()}
    except TypeError as error:  # of a type that NumPy does not have, as bfloat16
        raise ValueError(f"{files.path / name} cannot be read by NumPy: {error}") from None


def check_weights(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor], where: str) -> None:
    """Refuse weights that are not those of the model: other names, other shapes, no floats."""
    differences = [
        *(f"{name} is missing" for name in wanted if name not in found),
        *(f"{name[:80]!r} is not one of its weights" for name in found if name not in wanted),
        *(
            f"{name} is {_describe_tensor(found[name])} and should be {_describe_tensor(weight)}"
            for name, weight in wanted.items()
            if name in found and not _matches(found[name], weight)
        ),
    ]
    if differences:
        named = differences[:MAX_DIFFERENCES_NAMED]
        if len(differences) > len(named):
            named.append(f"and {len(differences) - len(named)} more")
        raise ValueError(f"{where}: the weights are not those of its recipe: {', '.join(named)}")


def _matches(found: Tensor, wanted: Tensor) -> bool:
    alike = found.dtype == wanted.dtype or {found.dtype, wanted.dtype} <= set(FLOATS)
    return alike and found.shape == wanted.shape


def _describe_tensor(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {str(tuple(tensor.shape))[:80]}"
