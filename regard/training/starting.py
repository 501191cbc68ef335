"""Where a run starts when it does not start from nothing: another run's weights and words.

[text]
from = "runs/pretrained"     its tokenizer; or a tokenizer.json, a run of the zoo by name, or a
                             Hugging Face folder

[model]
from = "runs/pretrained"     its weights, and without `name` its settings, too; a Hugging Face
                             folder always brings its settings
fresh = ["output"]           but for these parts, which start anew
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor, nn

from regard.checkpoints.hugging_face import HuggingFaceFolder
from regard.checkpoints.reading import MANIFEST, Folder, parse_toml
from regard.checkpoints.weights import check_weights, fill_tied
from regard.checkpoints.zoo import find_run
from regard.config import Recipe
from regard.tasks import Resources
from regard.text import Tokenizer

MAX_RECIPE_BYTES = (
    1 << 16
)  # tomllib takes seconds for a key of many dots, and minutes for a megabyte
START_KEYS = ("from", "fresh")


def resolve_start(content: dict[str, Any]) -> None:
    """Make the paths of model.from, text.from and data.taught_by absolute, and fill in a [model]
    without a name.

    A name of the zoo stays one, and means the same on another machine.
    """
    for section in ("text", "model"):
        table = content.get(section)
        if isinstance(table, dict) and isinstance(table.get("from"), str):
            table["from"] = _absolute(table["from"])
    data = content.get("data")
    if isinstance(data, dict) and isinstance(data.get("taught_by"), list):
        data["taught_by"] = [_absolute(name) for name in data["taught_by"]]
    model = content.get("model")
    if not isinstance(model, dict) or not isinstance(model.get("from"), str):
        return
    place = find_run(model["from"])
    # A folder of others has one model in it, whose settings are no choice of a recipe.
    if "name" not in model or is_hugging_face(place):
        theirs = open_start(place).model_section
        if model.get("name", theirs.get("name")) == theirs.get("name"):
            content["model"] = {**theirs, **model}


def _absolute(name: Any) -> Any:
    """The path of a run, wherever one stands then; a name of the zoo stays one. What is no name is
    refused when the recipe is checked."""
    if not isinstance(name, str) or find_run(Path(name)) != Path(name):
        return name
    return str(Path(name).absolute())


def is_hugging_face(place: Path) -> bool:
    """Whether a folder comes from transformers and not from a run."""
    return HuggingFaceFolder.is_at(place) and not (place / MANIFEST).is_file()


class FinishedRun:
    """A run folder that another run starts from."""

    def __init__(self, place: Path):
        self.place, self.files = place, Folder(place)

    @property
    def model_section(self) -> dict[str, Any]:
        """The settings of its model."""
        content = self.files.read("recipe.toml", MAX_RECIPE_BYTES)
        model = parse_toml(content, self.place / "recipe.toml").get("model", {})
        return {key: value for key, value in model.items() if key not in START_KEYS}

    @property
    def tokenizer(self) -> Tokenizer | None:
        """Its words."""
        return Resources.load(self.files).tokenizer

    def weights(self, model: nn.Module) -> dict[str, Tensor]:
        """Its weights, by the names that a model with tied ones has for them."""
        return fill_tied(self.files.tensors("model.safetensors"), model)


def open_start(place: Path) -> FinishedRun | HuggingFaceFolder:
    """A finished run, or a Hugging Face folder."""
    if (place / MANIFEST).is_file():
        return FinishedRun(place)
    if is_hugging_face(place):
        return HuggingFaceFolder(place)
    raise ValueError(
        f"from ({str(place)!r}) must be the folder of a finished run, or one's name in the zoo, or "
        "a Hugging Face folder"
    )


def find_tokenizer(recipe: Recipe) -> Tokenizer | None:
    """The tokenizer of text.from, if it is given."""
    if recipe.text.from_run is None:
        return None
    place = find_run(recipe.text.from_run)
    if place.is_file():
        return Tokenizer.load(place)
    tokenizer = open_start(place).tokenizer
    if tokenizer is None:
        raise ValueError(f"text.from ({str(place)!r}) has no tokenizer")
    return tokenizer


def load_start(model: nn.Module, recipe: Recipe) -> None:
    """Put the weights of model.from into a new model, but for the parts that start anew.

    Weights of the other run that this model has no place for are left behind; those it lacks must
    be named in model.fresh.
    """
    if "from" not in recipe.model:
        return
    place = find_run(recipe.model["from"])
    fresh = tuple(recipe.model.get("fresh", ()))
    wanted = {k: v for k, v in model.state_dict().items() if not starts_with_any(k, fresh)}
    held = open_start(place).weights(model)
    found = {name: held[name] for name in wanted if name in held}
    for part in fresh:
        if not any(starts_with_any(name, (part,)) for name in model.state_dict()):
            raise ValueError(f"model.fresh ({part!r}) is no part of {recipe.model['name']}")
    check_weights(found, wanted, f"model.from ({place}); model.fresh names parts that start anew")
    model.load_state_dict(_all_of(model, found))


def starts_with_any(name: str, parts: tuple[str, ...]) -> bool:
    """Whether a weight belongs to one of these parts: output.weight belongs to output."""
    return any(name == part or name.startswith(f"{part}.") for part in parts)


def _all_of(model: nn.Module, found: dict[str, Tensor]) -> dict[str, Tensor]:
    return {**model.state_dict(), **found}
