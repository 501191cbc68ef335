"""AllenNLP's ELMo: `options.json` and weights in HDF5, read by a table of names (theirs → ours).

Theirs come from TensorFlow: matrices are input × output, one matrix of a cell reads input and
state side by side, its blocks are i, g, f, o and 1 is added to f while it runs. The character table
begins with the first byte; ours has a row of zeros before it, for where there is no word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError
from torch import Tensor

from regard.checkpoints.memory import check_memory
from regard.checkpoints.reading import parse_json, read_regular
from regard.checkpoints.weights import check_weights
from regard.models.elmo import ELMo, ELMoConfig
from regard.models.outline import outline
from regard.text.spelling import CHARACTERS, SPELLING_LENGTH

OPTIONS = "options.json"
MAX_OPTIONS_BYTES = 1 << 16
MAX_ARRAYS = 1000
DIRECTIONS = ("RNN_0", "RNN_1")  # forward, backward
Array = NDArray[np.float32]


class _Options(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _LSTM(_Options):
    dim: int
    projection_dim: int
    n_layers: int
    cell_clip: float | None = None
    proj_clip: float | None = None
    use_skip_connections: bool = False


class _Embedding(_Options):
    dim: int


class _CharacterCNN(_Options):
    embedding: _Embedding
    filters: list[tuple[int, int]]
    n_highway: int
    n_characters: int = CHARACTERS
    max_characters_per_token: int = SPELLING_LENGTH
    activation: str = "relu"


class _ELMo(_Options):
    lstm: _LSTM
    char_cnn: _CharacterCNN


def is_elmo(folder: Path) -> bool:
    """Whether a folder holds AllenNLP's pair of files."""
    return (folder / OPTIONS).is_file() and _weight_file(folder) is not None


def read_elmo(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The settings of our `elmo` and its weights, of a language model without a softmax."""
    weights = _weight_file(folder)
    if not (folder / OPTIONS).is_file() or weights is None:
        raise ValueError(f"{folder} must hold {OPTIONS} and one .hdf5 file: no ELMo is there")
    settings = read_options(folder / OPTIONS)
    arrays = read_arrays(weights)
    config = ELMoConfig(**settings)
    wanted = outline(lambda: ELMo(config)).state_dict()
    found = dict(translate(arrays, config, weights))
    check_weights(found, wanted, str(weights))
    return settings, found


def _weight_file(folder: Path) -> Path | None:
    found = sorted(folder.glob("*.hdf5"))
    return found[0] if len(found) == 1 else None


def read_options(path: Path) -> dict[str, Any]:
    """The settings of our `elmo` out of `options.json`."""
    content = parse_json(read_regular(path, MAX_OPTIONS_BYTES), path)
    try:
        options = _ELMo.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "its content"
        raise ValueError(f"{path}: {place}: {first['msg']}") from None
    lstm, cnn = options.lstm, options.char_cnn
    for name, value, ours in (
        ("n_characters", cnn.n_characters, CHARACTERS),
        ("max_characters_per_token", cnn.max_characters_per_token, SPELLING_LENGTH),
    ):
        if value != ours:
            raise ValueError(f"{path}: char_cnn.{name} ({value}) must be {ours}, as published")
    return {
        "character_size": cnn.embedding.dim,
        "filters": tuple(cnn.filters),
        "activation": cnn.activation,
        "highway_layers": cnn.n_highway,
        "projection_size": lstm.projection_dim,
        "hidden_size": lstm.dim,
        "layers": lstm.n_layers,
        "cell_clip": lstm.cell_clip or 0.0,
        "projection_clip": lstm.proj_clip or 0.0,
        "residual": lstm.use_skip_connections,
    }


def read_arrays(path: Path) -> dict[str, Array]:
    """All arrays of an HDF5 file by their paths."""
    try:
        import h5py  # an extra: only this file needs it
    except ImportError:
        raise ValueError(
            f"{path}: to read HDF5 takes h5py, which is not installed: pip install 'regard[elmo]'"
        ) from None
    check_memory(path.stat().st_size, str(path))
    found: dict[str, Array] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and len(found) < MAX_ARRAYS:
            check_memory(item.size * 4, f"{path}: {name}")
            found[name] = np.asarray(item, dtype=np.float32)

    try:
        with h5py.File(path, "r") as file:
            file.visititems(visit)
    except (OSError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is no HDF5 file of numbers: {error}") from None
    return found


def translate(
    arrays: Mapping[str, Array], config: ELMoConfig, path: Path
) -> Iterator[tuple[str, Tensor]]:
    """Our names and tensors, each from the arrays it is made of."""

    def get(name: str) -> Tensor:
        if name not in arrays:
            raise ValueError(f"{path}: {name} is missing")
        return torch.from_numpy(arrays[name])

    table = get("char_embed")  # (261, size)
    yield "reader.words.embedding.weight", torch.cat([torch.zeros_like(table[:1]), table])
    for place in range(len(config.filters)):
        kernel = get(f"CNN/W_cnn_{place}").squeeze(0)  # (width, size, count)
        yield f"reader.words.filters.{place}.weight", kernel.permute(2, 1, 0)
        yield f"reader.words.filters.{place}.bias", get(f"CNN/b_cnn_{place}")
    for place in range(config.highway_layers):
        for ours, theirs in (("transform", "transform"), ("gate", "carry")):
            name = f"reader.words.highways.{place}.{ours}"
            yield f"{name}.weight", get(f"CNN_high_{place}/W_{theirs}").T
            yield f"{name}.bias", get(f"CNN_high_{place}/b_{theirs}")
    yield "reader.words.projection.weight", get("CNN_proj/W_proj").T
    yield "reader.words.projection.bias", get("CNN_proj/b_proj")
    for layer in range(config.layers):
        cells = [f"{each}/RNN/MultiRNNCell/Cell{layer}/LSTMCell" for each in DIRECTIONS]
        both = torch.stack([reorder(get(f"{cell}/W_0").T) for cell in cells])
        sizes = [config.projection_size] * 2
        if both.shape[-1] != sum(sizes):
            raise ValueError(f"{path}: {cells[0]}/W_0 reads {both.shape[-1]} numbers, not {sizes}")
        from_input, from_state = both.split(sizes, dim=-1)
        biases = torch.stack([reorder(get(f"{cell}/B")) for cell in cells])
        biases[:, config.hidden_size : 2 * config.hidden_size] += 1.0  # they add it while it runs
        yield f"reader.layers.{layer}.weight_ih", from_input
        yield f"reader.layers.{layer}.weight_hh", from_state
        yield f"reader.layers.{layer}.bias", biases
        projections = torch.stack([get(f"{cell}/W_P_0").T for cell in cells])
        yield f"reader.layers.{layer}.weight_hr", projections
    yield "mix.scores", torch.zeros(config.layers + 1)  # they have none: all layers alike
    yield "mix.gamma", torch.ones(())


def reorder(blocks: Tensor) -> Tensor:
    """The blocks i, g, f, o of a cell's rows as i, f, g, o."""
    i, g, f, o = blocks.chunk(4)
    return torch.cat([i, f, g, o])
