"""A recipe: TOML in, checked dataclasses out.

Sizes that follow from the data are not in it. `regard/recipes/` holds the shipped ones; a path
names one of your own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from regard.checkpoints.reading import check_size, children, parse_toml
from regard.config import Recipe
from regard.metrics import metric
from regard.models.catalog import MODELS, Entry, entry
from regard.naming import suggest
from regard.tasks import Task, find_task
from regard.training.checking import check_as, check_settings, check_value, show
from regard.training.overrides import apply_settings
from regard.training.shipped import find_recipe
from regard.training.starting import MAX_RECIPE_BYTES, resolve_start
from regard.training.toml import to_toml

STARTING = {"name": str, "from": str, "fresh": list[str]}
"""Keys of [model] that are no settings of the model, but say which it is and where it starts."""


def read_recipe(name: str, settings: list[str] | None = None) -> Recipe:
    """A shipped recipe by name, or a TOML file by path, with `a.b=value` overrides."""
    path = find_recipe(name)
    content = parse_content(path.read_bytes(), path)
    apply_settings(content, settings or [])
    refuse_sizes(content, path)
    resolve_start(content)
    expand_preset(content, path)
    check_integers(content, path)
    return check(content, str(path))


def refuse_sizes(content: dict[str, Any], path: Path) -> None:
    """Refuse sizes that follow from the data. A model that starts from another has that one's,
    which may have room for more words than there are."""
    task, model = content.get("task"), content.get("model")
    if not isinstance(task, dict) or not isinstance(model, dict) or "from" in model:
        return
    try:
        sizes = find_task(task.get("kind", "")).size_names
    except ValueError:
        return  # told when all is checked
    for key in model:
        if key in sizes:
            raise ValueError(f"{path}: model.{key} follows from the data: a recipe does not say it")


def expand_preset(content: dict[str, Any], path: Path) -> None:
    """Put the settings of `model.preset` into [model], where what is written there wins."""
    model = content.get("model")
    if not isinstance(model, dict) or "preset" not in model:
        return
    where = f"{path}: model"
    preset = check_value(str, model.pop("preset"), f"{where}.preset")
    try:
        content["model"] = {**entry(model.get("name", "")).preset(preset), **model}
    except ValueError as error:
        raise ValueError(f"{where}.{error}") from None


def parse_recipe(text: bytes, path: Path) -> Recipe:
    """The recipe of a run folder, in which nothing is left open."""
    content = parse_content(text, path)
    check_integers(content, path)
    return check(content, str(path))


def parse_content(text: bytes, path: Path) -> dict[str, Any]:
    """What a TOML file says, not checked yet."""
    check_size(len(text), MAX_RECIPE_BYTES, path)
    content = parse_toml(text, path)
    content.setdefault("name", path.stem)
    return content


def write_recipe(recipe: Recipe) -> bytes:
    """The recipe as TOML, with everything that was left out."""
    content = asdict(recipe)
    content["text"] = {_written(key): value for key, value in content["text"].items()}
    return to_toml(content).encode()


def _written(key: str) -> str:
    """`from` is a word of Python's own, so that a dataclass calls it otherwise."""
    return "from" if key == "from_run" else key


def check_integers(value: Any, path: Path) -> None:
    """Refuse whole numbers of more than 64 bits: TOML has none, and neither has torch."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"{path}: {show(value)} has more than the 64 bits of a whole number")
    for inner in children(value):
        check_integers(inner, path)


def check(content: dict[str, Any], where: str) -> Recipe:
    """The content as a `Recipe`, or a ValueError that names the file, the key, its value and the
    reason."""
    text = content.get("text")
    if isinstance(text, dict) and "from" in text:
        content["text"] = {**text, "from_run": text["from"]}
        del content["text"]["from"]
    recipe: Recipe = check_as(Recipe, content, where)
    kind, name = recipe.task["kind"], recipe.model["name"]
    try:
        task, model = find_task(kind), entry(name)
        check_pair(kind, name, model)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    settings = check_settings("task", task.config, recipe.task, ("kind",), (), where)
    recipe = replace(recipe, task={"kind": kind, **settings})
    sizes = task.size_names
    settings = check_settings("model", model.config, recipe.model, tuple(STARTING), sizes, where)
    recipe = replace(recipe, model={**check_start(recipe.model, where), **settings})
    try:
        check_select(recipe, task)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return recipe


def check_pair(kind: str, name: str, model: Entry) -> None:
    """Refuse a model that does not do the task."""
    if kind not in model.tasks:
        able = [each for each, other in MODELS.items() if kind in other.tasks]
        raise ValueError(
            f"model.name ({name!r}) does {', '.join(model.tasks)}, and task.kind is {kind!r}; "
            f"models for it: {', '.join(able) or 'none'}"
        )


def check_start(content: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What [model] says about where its weights start."""
    given = {key: content[key] for key in STARTING if key in content}
    if "fresh" in given and "from" not in given:
        raise ValueError(f"{where}: model.fresh names what does not come from model.from: say both")
    return {
        key: check_value(STARTING[key], value, f"{where}: model.{key}")
        for key, value in given.items()
    }


def check_select(recipe: Recipe, task: type[Task[Any]]) -> None:
    """Refuse evaluation.select when it is no metric of the task."""
    known, name = task(recipe).metrics, recipe.evaluation.select
    if name is None:
        return
    if name not in known:
        kind = recipe.task["kind"]
        raise ValueError(
            f"evaluation.select ({name!r}) is no metric of {kind}; {suggest(name, known)}"
        )
    metric(name)
