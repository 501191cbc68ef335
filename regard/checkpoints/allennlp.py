"""AllenNLP's ELMo: `options.json` and weights in HDF5, read by a table of names (theirs → ours).

Theirs come from TensorFlow: matrices are input × output, one matrix of a cell reads input and
state side by side, its blocks are i, g, f, o and 1 is added to f while it runs. The character table
begins with the first byte; ours has a row of zeros before it, for where there is no word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from torch import Tensor

from regard.checkpoints.memory import check_memory
from regard.checkpoints.reading import parse_json, read_regular
from regard.checkpoints.weights import check_weights
from regard.models.elmo import ELMoConfig
from regard.text.spelling import CHARACTERS, SPELLING_LENGTH

OPTIONS, WEIGHTS = "options.json", "*.hdf5"
MAX_OPTIONS_BYTES = 1 << 16
MAX_ARRAYS = 1000
DIRECTIONS = ("RNN_0", "RNN_1")  # forward, backward


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
    return _only(folder, f"*{OPTIONS}") is not None and _only(folder, WEIGHTS) is not None


def read_elmo(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The settings of our `elmo` and its weights, of a language model without a softmax."""
    options, weights = _only(folder, f"*{OPTIONS}"), _only(folder, WEIGHTS)
    if options is None or weights is None:
        raise ValueError(f"{folder} must hold {OPTIONS} and one .hdf5 file: no ELMo is there")
    settings = read_options(options)
    config = ELMoConfig(**settings)
    arrays = read_arrays(weights)
    wanted = {name: torch.empty(shape, device="meta") for name, shape in list_arrays(config)}
    check_weights(arrays, wanted, f"{weights} against {options.name}")
    return settings, dict(translate(arrays, config))


def _only(folder: Path, pattern: str) -> Path | None:
    """The file of this kind, if there is one and no other: as they are published, both files
    begin with the name of the model."""
    found = [path for path in folder.glob(pattern) if path.is_file()]
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


def list_arrays(config: ELMoConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The arrays of a weight file by their paths, with their shapes."""
    size = sum(count for _, count in config.filters)
    yield "char_embed", (CHARACTERS - 1, config.character_size)
    for place, (width, count) in enumerate(config.filters):
        yield f"CNN/W_cnn_{place}", (1, width, config.character_size, count)
        yield f"CNN/b_cnn_{place}", (count,)
    for place, name in product(range(config.highway_layers), ("carry", "transform")):
        yield f"CNN_high_{place}/W_{name}", (size, size)
        yield f"CNN_high_{place}/b_{name}", (size,)
    yield "CNN_proj/W_proj", (size, config.projection_size)
    yield "CNN_proj/b_proj", (config.projection_size,)
    for layer, direction in product(range(config.layers), DIRECTIONS):
        cell = name_cell(direction, layer)
        yield f"{cell}/W_0", (2 * config.projection_size, 4 * config.hidden_size)
        yield f"{cell}/B", (4 * config.hidden_size,)
        yield f"{cell}/W_P_0", (config.hidden_size, config.projection_size)


def name_cell(direction: str, layer: int) -> str:
    return f"{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"


def read_arrays(path: Path) -> dict[str, Tensor]:
    """All arrays of an HDF5 file by their paths."""
    try:
        import h5py  # an extra: only this file needs it
    except ImportError:
        raise ValueError(
            f"{path}: to read HDF5 takes h5py, which is not installed: pip install 'regard[elmo]'"
        ) from None
    check_memory(path.stat().st_size, str(path))
    found: dict[str, Tensor] = {}

    def visit(name: str, item: Any) -> None:
        if not isinstance(item, h5py.Dataset) or len(found) == MAX_ARRAYS:
            return
        if item.external or item.is_virtual:
            raise ValueError(f"{name} is in another file")
        check_memory(item.size * 4, f"{path}: {name}")
        found[name] = torch.from_numpy(np.array(item, dtype=np.float32))

    try:
        with h5py.File(path, "r") as file:
            file.visititems(visit)
    except (OSError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is no HDF5 file of numbers: {error}") from None
    return found


def translate(arrays: Mapping[str, Tensor], config: ELMoConfig) -> Iterator[tuple[str, Tensor]]:
    """Our names and tensors, each from the arrays it is made of."""
    table = arrays["char_embed"]  # (261, size)
    yield "reader.words.embedding.weight", torch.cat([torch.zeros_like(table[:1]), table])
    for place in range(len(config.filters)):
        kernel = arrays[f"CNN/W_cnn_{place}"].squeeze(0)  # (width, size, count)
        yield f"reader.words.filters.{place}.weight", kernel.permute(2, 1, 0)
        yield f"reader.words.filters.{place}.bias", arrays[f"CNN/b_cnn_{place}"]
    for place in range(config.highway_layers):
        for ours, theirs in (("transform", "transform"), ("gate", "carry")):
            name = f"reader.words.highways.{place}.{ours}"
            yield f"{name}.weight", arrays[f"CNN_high_{place}/W_{theirs}"].T
            yield f"{name}.bias", arrays[f"CNN_high_{place}/b_{theirs}"]
    yield "reader.words.projection.weight", arrays["CNN_proj/W_proj"].T
    yield "reader.words.projection.bias", arrays["CNN_proj/b_proj"]
    for layer in range(config.layers):
        cells = [name_cell(direction, layer) for direction in DIRECTIONS]
        both = torch.stack([reorder(arrays[f"{cell}/W_0"].T) for cell in cells])
        from_input, from_state = both.chunk(2, dim=-1)
        biases = torch.stack([reorder(arrays[f"{cell}/B"]) for cell in cells])
        biases[:, config.hidden_size : 2 * config.hidden_size] += 1.0  # they add it while it runs
        yield f"reader.layers.{layer}.weight_ih", from_input
        yield f"reader.layers.{layer}.weight_hh", from_state
        projections = torch.stack([arrays[f"{cell}/W_P_0"].T for cell in cells])
        yield f"reader.layers.{layer}.weight_hr", projections
        yield f"reader.layers.{layer}.bias", biases


def reorder(blocks: Tensor) -> Tensor:
    """The blocks i, g, f, o of a cell's rows as i, f, g, o."""
    i, g, f, o = blocks.chunk(4)
    return torch.cat([i, f, g, o])
