"""What a recipe asks for, made ready: data read, words learned, feeds laid out, a model built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

import torch
from torch import nn

from regard.checkpoints.memory import check_memory
from regard.config import Recipe, TrainingConfig
from regard.data.batches import Batch
from regard.data.feeds import Feed
from regard.models import catalog
from regard.models.outline import count_parameter_bytes, count_table_bytes, outline
from regard.tasks import Resources, Task, make_task
from regard.training.recipe import STARTING
from regard.training.starting import find_tokenizer, load_start


@dataclass(frozen=True)
class Work:
    """Everything training needs."""

    recipe: Recipe
    task: Task[Any]
    resources: Resources
    model: Any
    train: Feed[Batch]
    valid: Feed[Batch] | None


def prepare(recipe: Recipe, resume: bool = False, answers: Sequence[str] = ()) -> Work:
    """Words are learned from the training data, unless text.from brings them; the answers of
    teachers belong to these.

    A run that is resumed has its weights in a checkpoint, and model.from may be gone by then.
    """
    task = make_task(recipe)
    corpus, valid = task.read("train"), task.read("valid")
    if answers:
        corpus = task.add_answers(corpus, answers)
    resources = task.prepare(corpus, find_tokenizer(recipe))
    model = build(recipe, task, resources)
    if not resume:
        load_start(model, recipe)
    return Work(
        recipe,
        task,
        resources,
        model,
        task.training_feed(corpus, resources),
        None if valid is None else task.scoring_feed(valid, resources),
    )


def build(recipe: Recipe, task: Task[Any], resources: Resources) -> Any:
    """A new model to be trained, its weights drawn with the recipe's seed."""
    sketch = outline(lambda: assemble(recipe, task, resources))
    if isinstance(sketch, nn.Module):
        name = recipe.model["name"]
        check_memory(count_training_bytes(sketch, recipe.training), f"training {name}")
    torch.manual_seed(recipe.seed)
    model = assemble(recipe, task, resources)
    task.initialise(model, resources)
    return model


def assemble(recipe: Recipe, task: Task[Any], resources: Resources) -> Any:
    """The model of a recipe, in the sizes that follow from its data."""
    name, kind = recipe.model["name"], recipe.task["kind"]
    written = {key: value for key, value in recipe.model.items() if key not in STARTING}
    known = {field.name: field.default for field in fields(catalog.entry(name).config)}
    sizes = {key: size for key, size in task.sizes(resources).items() if key in known}
    for key, size in sizes.items():
        if written.get(key, size) < size:
            raise ValueError(
                f"model.{key} ({written[key]}) must be {size} or more, as the data are"
            )
    settings: dict[str, Any] = {**sizes, **written}
    for key in task.size_names:
        if known.get(key) is MISSING and key not in settings:
            raise ValueError(f"model.{key} is missing: there is nothing here that it follows from")
    return catalog.build(name, kind, **settings)


def count_training_bytes(model: nn.Module, training: TrainingConfig) -> int:
    """What weights, gradients, the optimizer and kept copies of the weights take in main memory.

    What a batch leaves for its backward pass comes on top.
    """
    if torch.cuda.is_available():  # the rest is then in the memory of the card
        return count_parameter_bytes(model) + count_table_bytes(model)
    optimizer = int(training.momentum > 0) if training.optimizer == "sgd" else 2
    copies = training.restore_best + (training.ema > 0)
    return (2 + optimizer + copies) * count_parameter_bytes(model) + count_table_bytes(model)
