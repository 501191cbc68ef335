"""python -m benchmarks.senses RUN [PLAIN]: what the senses of a Backpack do, and what they know.

**Effect.** Fifty words of the validation text, drawn once. For each of a word's senses: switch it
off where the text ends in that word, and see how the log-probabilities of the next word move: of
the ten words that this sense names (those it raises most), and of ten words that the other senses
name and this one does not. A sense does what it says if the first fall and the second stay.

**Likeness.** SimLex-999: Spearman's correlation of the cosine between two words' vectors with what
people say of their likeness, for each sense, for the least like of all senses, and for the
embeddings; those of PLAIN, a run without senses on the same words, stand beside them.

Writes results/senses/NAME.json, from which docs/results.md is made.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from benchmarks.sections import RESULTS, senses_table
from regard.atomic import write_atomically
from regard.data.batches import Words
from regard.data.corpora import read_lines
from regard.data.files import find_file
from regard.models.backpack import Backpack
from regard.running import Run, load
from regard.tasks.senses import as_backpack, sense_logits

WORDS, NAMED, CONTEXTS, LENGTH, SEED = 50, 10, 16, 64, 1
FEWEST = 5
"""Times a word must come in the validation text to be drawn."""
SIMLEX = "wordsim/EN-SIMLEX-999.txt"
Array = NDArray[np.float64]


def validation_ids(run: Run) -> list[int]:
    """The words of the validation text, each line ended."""
    lines: Any = run.task.read("valid")
    assert run.tokenizer.end is not None
    return [
        word for each in run.tokenizer.encode_all(lines) for word in [*each.ids, run.tokenizer.end]
    ]


def draw_words(run: Run, text: list[int]) -> list[int]:
    """Some words of letters alone that come often enough, all with the same chance."""
    counts = np.bincount(text, minlength=run.tokenizer.size)
    tokens = run.tokenizer.tokens_of(range(run.tokenizer.size))
    able = [n for n, token in enumerate(tokens) if counts[n] >= FEWEST and token.isalpha()]
    return sorted(np.random.default_rng(SEED).choice(able, WORDS, replace=False).tolist())


def contexts_of(word: int, text: list[int]) -> Words:
    """The first pieces of the text that end in the word."""
    ends = [n + 1 for n, each in enumerate(text) if each == word][:CONTEXTS]
    return Words.prompts([text[max(0, end - LENGTH) : end] for end in ends])


def named_words(logits: Tensor) -> list[tuple[list[int], list[int]]]:
    """For each sense the words it names, and as many that the others name and it does not: those
    that come first when the others' lists are read side by side."""
    tops: list[list[int]] = logits.topk(NAMED * 2).indices.tolist()
    pairs = []
    for sense, top in enumerate(tops):
        others = [each for n, each in enumerate(tops) if n != sense]
        abreast = dict.fromkeys(word for row in zip(*others, strict=True) for word in row)
        # Not even among the next ten: near the end of a list a word is named by chance.
        pairs.append((top[:NAMED], [word for word in abreast if word not in top][:NAMED]))
    return pairs


def log_probabilities(model: Backpack, contexts: Words) -> Tensor:
    """(context, word) of the next word."""
    features, _ = model.features(contexts)
    return model.output(features[:, -1]).log_softmax(dim=-1)


@torch.no_grad()
def measure_effect(run: Run) -> dict[str, Any]:
    """How log-probabilities move when a sense is switched off: means over the senses of a word, and
    their mean and standard error over words."""
    model, text = as_backpack(run.model).eval(), validation_ids(run)
    moved = []
    for word in draw_words(run, text):
        contexts = contexts_of(word, text)
        before, changes = log_probabilities(model, contexts), []
        for sense, pair in enumerate(named_words(sense_logits(model, word))):
            after = log_probabilities(model.with_senses({word: {sense: 0.0}}), contexts)
            fallen = (after - before).mean(dim=0)  # (word,)
            changes.append([float(fallen[each].mean()) for each in pair])
        moved.append(np.mean(changes, axis=0))
    named, others = np.array(moved).T
    return {
        "words": len(moved),
        "senses": model.config.senses,
        "named": summarise(named),
        "others": summarise(others),
        "difference": summarise(named - others),
        "effect_size": float((others - named).mean() / (others - named).std(ddof=1)),
        "words_as_said": int((named < others).sum()),
    }


def summarise(values: Array) -> dict[str, float]:
    """Mean and standard error."""
    return {"mean": float(values.mean()), "error": float(values.std(ddof=1) / len(values) ** 0.5)}


def read_simlex(run: Run) -> tuple[Tensor, Array, int]:
    """Pairs of words (pair, 2) that the run knows, how alike people find them, and of how many."""
    about = {"set": "SimLex-999", "source": "Hill, Reichart & Korhonen (2015)"}
    path = find_file(SIMLEX, replace(run.recipe.data, **about))
    rows = [line.split() for line in read_lines(path)]
    ids = [[run.tokenizer.encode(word).ids for word in row[:2]] for row in rows]
    known = [
        all(len(each) == 1 and each[0] != run.tokenizer.unknown for each in both) for both in ids
    ]
    pairs = [[one[0], two[0]] for (one, two), able in zip(ids, known, strict=True) if able]
    scores = [float(row[2]) for row, able in zip(rows, known, strict=True) if able]
    return torch.tensor(pairs), np.array(scores), len(rows)


@torch.no_grad()
def measure_likeness(run: Run, plain: Run | None) -> dict[str, Any]:
    """Spearman's correlations with SimLex-999."""
    model = as_backpack(run.model).eval()
    pairs, scores, whole = read_simlex(run)

    def cosine(vectors: Tensor) -> Tensor:
        return F.cosine_similarity(vectors[:, 0], vectors[:, 1], dim=-1)

    by_sense = cosine(model.senses(pairs))  # (pair, sense)
    found = {
        "pairs": len(pairs),
        "of": whole,
        "by_sense": [spearman(each.numpy(), scores) for each in by_sense.unbind(dim=1)],
        "least_of_senses": spearman(by_sense.amin(dim=1).numpy(), scores),
        "embeddings": spearman(cosine(model.embedding.weight[pairs]).numpy(), scores),
    }
    if plain is not None:
        if plain.tokenizer.tokens_of(range(plain.tokenizer.size)) != run.tokenizer.tokens_of(
            range(run.tokenizer.size)
        ):
            raise ValueError(f"{plain.folder} and {run.folder} do not have the same words")
        vectors = plain.model.embedding.weight[pairs]
        found["plain_embeddings"] = spearman(cosine(vectors).numpy(), scores)
    return found


def spearman(ours: NDArray[Any], theirs: NDArray[Any]) -> float:
    """ρ: the correlation of ranks, those that are equal sharing theirs."""
    return float(np.corrcoef(rank(ours), rank(theirs))[0, 1])


def rank(values: NDArray[Any]) -> Array:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    shared: Array = (last - (counts - 1) / 2)[places]
    return shared


def main() -> None:
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python -m benchmarks.senses RUN [PLAIN]")
    run, plain = load(sys.argv[1]), load(sys.argv[2]) if len(sys.argv) == 3 else None
    found = {
        "recipe": run.recipe.name,
        "effect": measure_effect(run),
        "simlex": measure_likeness(run, plain),
    }
    path = RESULTS / "senses" / f"{run.recipe.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, (json.dumps(found, indent=1) + "\n").encode())
    print(senses_table(found))


if __name__ == "__main__":
    main()
