"""What a recipe asks for, made ready: text read, cut into tokens, laid out as a feed, a model
built."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.checkpoints.memory import check_memory
from regard.data import corpora
from regard.data.feeds import Columns, Feed, Packed, Sentences, Windows
from regard.models import catalog
from regard.models.outline import count_parameter_bytes, count_table_bytes, outline
from regard.text import END, PAD, START, UNKNOWN, Tokenizer
from regard.training.files import found
from regard.training.recipe import DataConfig, Recipe, TrainingConfig

Sentence = Sequence[int]


@dataclass(frozen=True)
class Work:
    """Everything training and evaluation need."""

    recipe: Recipe
    tokenizer: Tokenizer
    model: Any
    train: Feed
    valid: Feed | None


def specials_of(recipe: Recipe) -> tuple[str, ...]:
    """Declared in the recipe, else what the task cannot do without."""
    if recipe.text.specials is not None:
        return recipe.text.specials
    if recipe.task.kind == "translation":
        return (PAD, UNKNOWN, START, END)
    return () if recipe.data.unit == "character" else (UNKNOWN, END)


def prepare(recipe: Recipe, beside: Path) -> Work:
    """From nothing: the tokenizer is trained on the training text."""
    if recipe.task.kind == "translation":
        from regard.training import parallel

        return parallel.prepare(recipe, beside, specials_of(recipe))
    texts = Texts.read(recipe.data, beside)
    tokenizer = Tokenizer.train(texts.train, recipe.text, specials_of(recipe))
    model = build(recipe, tokenizer)
    train = language_feed(texts.train, tokenizer, recipe, recipe.seed)
    valid = texts.valid and language_feed(texts.valid, tokenizer, scoring(recipe), None)
    return Work(recipe, tokenizer, model, train, valid or None)


def build(recipe: Recipe, tokenizer: Tokenizer) -> Any:
    """A new model to be trained, its weights drawn with the recipe's seed."""
    sketch = outline(lambda: assemble(recipe, tokenizer))
    if isinstance(sketch, nn.Module):
        check_memory(
            count_training_bytes(sketch, recipe.training), f"training {recipe.model['name']}"
        )
    torch.manual_seed(recipe.seed)
    return assemble(recipe, tokenizer)


def assemble(recipe: Recipe, tokenizer: Tokenizer) -> Any:
    """The model of a recipe, over the words of a tokenizer."""
    settings = {key: value for key, value in recipe.model.items() if key != "name"}
    if "vocabulary_size" in settings:
        raise ValueError("model.vocabulary_size follows from the data: a recipe does not say it")
    return catalog.build(recipe.model["name"], vocabulary_size=tokenizer.size, **settings)


def count_training_bytes(model: nn.Module, training: TrainingConfig) -> int:
    """What weights, gradients, the optimizer and kept copies of the weights take in main memory.

    What a batch leaves for its backward pass comes on top.
    """
    if torch.cuda.is_available():  # the rest is then in the memory of the card
        return count_parameter_bytes(model) + count_table_bytes(model)
    optimizer = int(training.momentum > 0) if training.optimizer == "sgd" else 2
    kept = training.restore_best + (training.ema > 0)
    return (2 + optimizer + kept) * count_parameter_bytes(model) + count_table_bytes(model)


@dataclass(frozen=True)
class Texts:
    """Training and validation text: lines, or one long string each."""

    train: Iterable[str]
    valid: Iterable[str] | None

    @classmethod
    def read(cls, data: DataConfig, beside: Path) -> Texts:
        if data.train is None:
            raise ValueError("data.train is missing: which file is to be learned from?")
        train = Text(data.train, data, beside)
        if data.valid is not None:
            return cls(train, Text(data.valid, data, beside))
        if not data.valid_share:
            return cls(train, None)
        if data.unit == "character":
            whole = "".join(train)
            cut = int(len(whole) * (1 - data.valid_share))
            return cls([whole[:cut]], [whole[cut:]])
        lines = list(train)
        cut = int(len(lines) * (1 - data.valid_share))
        return cls(lines[:cut], lines[cut:])


class Text:
    """A text file that can be gone through more than once, without being held."""

    def __init__(self, file: str | list[str], data: DataConfig, beside: Path):
        if isinstance(file, list):
            raise ValueError(f"a language model learns from one file, not from {len(file)}: {file}")
        self.path, self.data = found(file, data, beside), data

    def __iter__(self) -> Any:
        if self.data.unit == "character":
            return iter([corpora.whole(self.path)])
        column = self.data.columns[0] if self.data.columns else None
        return corpora.lines(self.path, format=self.data.format, column=column)


def scoring(recipe: Recipe) -> Recipe:
    """The recipe for a text that is only scored: in order, and every word once."""
    training = replace(recipe.training, batch=recipe.evaluation.batch)
    if training.feed != "sentences":
        training = replace(training, feed="columns")
    return replace(recipe, training=training)


def language_feed(
    text: Iterable[str], tokenizer: Tokenizer, recipe: Recipe, seed: int | None
) -> Feed:
    training = recipe.training
    if training.feed in ("sentences", "packed"):
        return sentence_feed(sentences(text, tokenizer), tokenizer, training, seed)
    words = stream(text, tokenizer)
    if training.feed == "windows":
        return Windows(words, training.batch, training.length, recipe.seed)
    return Columns(words, training.batch, training.length)


def sentence_feed(
    lines: list[Sentence], tokenizer: Tokenizer, training: TrainingConfig, seed: int | None
) -> Feed:
    if tokenizer.end is None:
        raise ValueError(f"training.feed ({training.feed!r}) needs {END} among text.specials")
    if training.feed == "packed":
        ended = [[tokenizer.end, *line, tokenizer.end] for line in lines]
        return Packed(ended, training.batch, training.length, seed or 0)
    return Sentences(lines, tokenizer.end, training.tokens, seed)


def sentences(text: Iterable[str], tokenizer: Tokenizer) -> list[Sentence]:
    return [encoded.ids for encoded in tokenizer.encode_all(text)]


def stream(text: Iterable[str], tokenizer: Tokenizer) -> Tensor:
    """All words in a row, every line ended by </s>, which also stands before the first; without
    </s>, the text as it is."""
    end = tokenizer.end
    ids = array("i", [] if end is None else [end])
    for encoded in tokenizer.encode_all(text):
        ids.extend(encoded.ids)
        if end is not None:
            ids.append(end)
    return torch.frombuffer(ids, dtype=torch.int32).clone() if ids else torch.zeros(0)
