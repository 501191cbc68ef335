"""Translation made ready: pairs from files or from a generator that knows the right answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from regard.data import corpora
from regard.data.feeds import Translations
from regard.data.numbers import LANGUAGES, join_name, number_examples, split_name
from regard.decoding import decode
from regard.text import Tokenizer
from regard.training.evaluation import score, seconds, signature
from regard.training.files import found
from regard.training.objectives import Objective
from regard.training.recipe import Recipe
from regard.training.tasks import Work, build

NUMBERS = "numbers-"
TextPair = tuple[str, str]


def prepare(recipe: Recipe, beside: Path, roles: tuple[str, ...]) -> Work:
    """One tokenizer for both sides, so that languages can share an encoder."""
    train = pairs_of(recipe, "train", beside)
    tokenizer = Tokenizer.train((side for pair in train for side in pair), recipe.text, roles)
    valid = pairs_of(recipe, "valid", beside)
    return Work(
        recipe,
        tokenizer,
        build(recipe, tokenizer),
        feed(train, tokenizer, recipe, recipe.seed),
        feed(valid, tokenizer, recipe, None) if valid else None,
    )


def pairs_of(recipe: Recipe, split: str, beside: Path) -> list[TextPair]:
    """The pairs of a split, each side a string of tokens with blanks between them."""
    data = recipe.data
    if data.generator is not None:
        counts = {
            "train": data.examples,
            "valid": data.valid_examples,
            "test": data.test_examples,
        }
        language = language_of(data.generator)
        examples = number_examples(language, recipe.seed, split)
        return [
            (" ".join(e.source), " ".join(e.target))
            for e in (examples[i] for i in range(counts[split]))
        ]
    files = getattr(data, split)
    if files is None:
        if split == "train":
            raise ValueError("data.train is missing: two files, or a data.generator")
        return []
    return read_pairs(files, recipe, beside)


def read_pairs(files: str | list[str], recipe: Recipe, beside: Path) -> list[TextPair]:
    data = recipe.data
    named = [files] if isinstance(files, str) else files
    paths = [found(name, data, beside) for name in named]
    columns = None if data.columns is None else (data.columns[0], data.columns[1])
    where = paths[0] if len(paths) == 1 else paths
    return list(corpora.pairs(where, data.format, columns))


def feed(
    pairs: Sequence[TextPair], tokenizer: Tokenizer, recipe: Recipe, seed: int | None
) -> Translations:
    sources, targets = (tokenizer.encode_all(side) for side in zip(*pairs, strict=True))
    ids = [(s.ids, t.ids) for s, t in zip(sources, targets, strict=True)]
    empty = next((i for i, (source, _) in enumerate(ids) if not source), None)
    if empty is not None:
        raise ValueError(f"pair {empty + 1} has an empty source: there is nothing to translate")
    if tokenizer.start is None or tokenizer.end is None or tokenizer.pad is None:
        raise ValueError(
            "translation needs tokens with the roles pad, start and end; "
            "text.roles or text.specials declares them"
        )
    return Translations(
        ids, tokenizer.start, tokenizer.end, tokenizer.pad, recipe.training.tokens, seed
    )


@torch.no_grad()
def evaluate(
    model: Any, tokenizer: Tokenizer, recipe: Recipe, files: list[str], split: str = "valid"
) -> dict[str, Any]:
    """Loss over the pairs, and the share translated right to the last word."""
    started = time.monotonic()
    pairs = read_pairs(files, recipe, Path()) if files else pairs_of(recipe, split, Path())
    if not pairs:
        raise ValueError(f"there is no data.{split} to evaluate on; --data names files")
    laid = feed(pairs, tokenizer, recipe, None)
    values: dict[str, Any] = score(Objective(model), laid, carries=False)
    values["exact_match"] = exact_match(model, laid, tokenizer, recipe)
    values["seconds"] = seconds(started)
    told = signature(
        recipe, "exact_match", values["exact_match"], data="--data" if files else split
    )
    return {**values, "signature": told}


def exact_match(model: Any, laid: Translations, tokenizer: Tokenizer, recipe: Recipe) -> float:
    right = 0
    for index in range(laid.batches(0)):
        batch = laid.batch(0, index)
        first = batch.target_input[:, 0]
        answers = decode(model, batch, first, recipe.decoding, end=tokenizer.end)
        wanted = [
            tuple(row[real].tolist())
            for row, real in zip(batch.target_output, batch.target_mask, strict=True)
        ]
        right += sum(each[0].ids == truth for each, truth in zip(answers, wanted, strict=True))
    return right / len(laid.pairs)


def language_of(generator: str) -> str:
    """numbers-de → de"""
    language = generator.removeprefix(NUMBERS)
    if not generator.startswith(NUMBERS) or language not in LANGUAGES or language == "en":
        known = ", ".join(f"{NUMBERS}{name}" for name in LANGUAGES if name != "en")
        raise ValueError(f"data.generator ({generator!r}) must be one of {known}")
    return language


def taken_apart(text: str, recipe: Recipe) -> str:
    """What a user writes, as the model reads it: twenty-one → twenty one."""
    if recipe.data.generator is None:
        return text
    return " ".join(split_name(text.strip().lower(), "en"))


def put_together(text: str, recipe: Recipe) -> str:
    """What the model says, as a user writes it: ein und zwanzig → einundzwanzig."""
    if recipe.data.generator is None:
        return text
    return join_name(text.split(), language_of(recipe.data.generator))
