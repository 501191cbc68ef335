"""What a recipe asks for, made ready: text read, cut into tokens, laid out as a feed, a model
built."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.checkpoints.memory import check_memory
from regard.data import corpora
from regard.data.feeds import Columns, Feed, Packed, PackedInOrder, Sentences, Windows
from regard.models import catalog
from regard.models.outline import count_parameter_bytes, count_table_bytes, outline
from regard.text import Tokenizer
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


def roles_of(recipe: Recipe) -> tuple[str, ...]:
    """The special tokens that the task cannot do without, by what they are for."""
    if recipe.task.kind == "translation":
        return ("pad", "unknown", "start", "end")
    return () if recipe.data.unit == "character" else ("unknown", "end")


def prepare(recipe: Recipe, beside: Path) -> Work:
    """From nothing: the tokenizer is trained on the training text."""
    if recipe.task.kind == "translation":
        from regard.training import parallel

        return parallel.prepare(recipe, beside, roles_of(recipe))
    texts = Texts.read(recipe.data, beside)
    tokenizer = Tokenizer.train(texts.train, recipe.text, roles_of(recipe))
    model = build(recipe, tokenizer)
    train = training_feed(texts.train, tokenizer, recipe)
    valid = None if texts.valid is None else scoring_feed(texts.valid, tokenizer, recipe)
    return Work(recipe, tokenizer, model, train, valid)


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


def training_feed(text: Iterable[str], tokenizer: Tokenizer, recipe: Recipe) -> Feed:
    """A text laid out to be learned from, in the way and order the recipe asks for."""
    training, seed = recipe.training, recipe.seed
    match training.feed:
        case "columns":
            return Columns(
                stream(text, tokenizer, recipe.data.unit), training.batch, training.length
            )
        case "windows":
            return Windows(
                stream(text, tokenizer, recipe.data.unit), training.batch, training.length, seed
            )
        case "sentences":
            end = end_of(tokenizer, training)
            return Sentences(sentences(text, tokenizer), end, training.tokens, seed)
        case "packed":
            documents = enclosed(text, tokenizer, training)
            return Packed(documents, training.batch, training.length, seed)


def scoring_feed(text: Iterable[str], tokenizer: Tokenizer, recipe: Recipe) -> Feed:
    """A text laid out to be scored: every word a target once, predicted from what the model could
    see in training. Windows are of one text, so that it is read from its beginning to its end."""
    training, batch = recipe.training, recipe.evaluation.batch
    match training.feed:
        case "columns" | "windows":
            return Columns(stream(text, tokenizer, recipe.data.unit), batch, training.length)
        case "sentences":
            return Sentences(
                sentences(text, tokenizer), end_of(tokenizer, training), training.tokens
            )
        case "packed":
            return PackedInOrder(enclosed(text, tokenizer, training), batch, training.length)


def end_of(tokenizer: Tokenizer, training: TrainingConfig) -> int:
    """What ends a sentence, for feeds that cannot do without."""
    if tokenizer.end is None:
        raise ValueError(
            f"training.feed ({training.feed!r}) needs a token with the role 'end'; "
            "text.roles or text.specials declares one"
        )
    return tokenizer.end


def enclosed(text: Iterable[str], tokenizer: Tokenizer, training: TrainingConfig) -> list[Sentence]:
    """Sentences between two ends: the first is what their first word is predicted from."""
    end = end_of(tokenizer, training)
    return [[end, *sentence, end] for sentence in sentences(text, tokenizer)]


def sentences(text: Iterable[str], tokenizer: Tokenizer) -> list[Sentence]:
    return [encoded.ids for encoded in tokenizer.encode_all(text)]


def stream(text: Iterable[str], tokenizer: Tokenizer, unit: str) -> Tensor:
    """All words in a row, every line ended by </s>, which also stands before the first; without
    </s>, the text as it stands."""
    end = tokenizer.end
    if end is None and unit == "line":
        raise ValueError(
            "data.unit ('line') needs a token with the role 'end' (text.roles or text.specials "
            "declares one), or one line would run into the next; data.unit = 'character' reads the "
            "text as it stands, with its line ends"
        )
    ids = array("i", [] if end is None else [end])
    for encoded in tokenizer.encode_all(text):
        ids.extend(encoded.ids)
        if end is not None:
            ids.append(end)
    return torch.frombuffer(ids, dtype=torch.int32).clone() if ids else torch.zeros(0)
