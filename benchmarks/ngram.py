"""python -m benchmarks.ngram: Kneser-Ney against nltk's, and on the Penn Treebank.

The peer is no dependency of the project: `pip install nltk` first. The corpus is the Penn Treebank
below $REGARD_DATA (else ../shared/data). The whole table takes about two minutes on two cores.
"""

from __future__ import annotations

import gzip
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.racing import Row, below, compared, print_table, race
from regard.models.ngram import Ngram, NgramConfig
from regard.models.smoothing import Ints

HERE = Path(__file__).parents[1].parent / "shared/data"
FOLDER = Path(os.environ.get("REGARD_DATA", HERE)) / "ptb"
END = "</s>"
ORDER = 3
SCORED = 12  # tokens for the peer, which takes a tenth of a second and more for each


def corpus(split: str) -> list[list[str]]:
    text = gzip.decompress((FOLDER / f"ptb.{split}.txt.gz").read_bytes()).decode()
    return [line.split() for line in text.splitlines()]


def as_ids(sentences: list[list[str]], vocabulary: dict[str, int]) -> Ints:
    words = (word for sentence in sentences for word in [*sentence, END])
    return np.array([vocabulary.setdefault(word, len(vocabulary)) for word in words])


def nltk_model(sentences: list[list[str]]) -> Any:
    from nltk.lm import KneserNeyInterpolated
    from nltk.lm.preprocessing import padded_everygram_pipeline

    ngrams, words = padded_everygram_pipeline(ORDER, sentences)
    model = KneserNeyInterpolated(ORDER)
    model.fit(ngrams, words)
    return model


def against_nltk(sentences: list[list[str]], ids: Ints, vocabulary_size: int) -> list[Row]:
    config = NgramConfig(vocabulary_size=vocabulary_size, order=ORDER)
    made: list[Any] = [None, None]

    def keep(place: int, make: Callable[[], Any]) -> Callable[[], object]:
        def work() -> None:
            made[place] = make()

        return work

    mine, theirs = race(
        [
            keep(0, lambda: Ngram(config).fit(ids, end=0)),
            keep(1, lambda: nltk_model(sentences)),
        ],
        seconds=0,
        rounds=1,
    )
    rows = [compared(f"fit order {ORDER}, {len(ids):,} tokens", mine, theirs, at_least=5)]
    ours, peer = made
    words = ["<s>", "<s>", *sentences[0], END]

    def score_a_few() -> None:
        for place in range(2, 2 + SCORED):
            peer.score(words[place], words[place - 2 : place])

    mine, theirs = race([lambda: ours.log_probabilities(ids), score_a_few], seconds=0, rounds=3)
    what = f"score order {ORDER}, 1,000 tokens ({len(ids):,} and {SCORED} were timed)"
    rows.append(compared(what, 1000 * mine / len(ids), 1000 * theirs / SCORED, at_least=1000))
    return rows


def penn_treebank(train: Ints, valid: Ints, vocabulary_size: int) -> list[Row]:
    start = time.perf_counter()
    model = Ngram(NgramConfig(vocabulary_size=vocabulary_size)).fit(train, end=0)
    perplexity = model.perplexity(valid)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    model.log_probabilities(train)
    scored = time.perf_counter() - start
    numbers = np.random.default_rng(1)
    contexts = [valid[place - 4 : place] for place in numbers.integers(4, len(valid), 100)]
    contexts += list(numbers.integers(0, vocabulary_size, (100, 4)))
    worst = max(abs(model.distribution(context).sum() - 1) for context in contexts)
    return [
        below("Penn Treebank, order 5: valid perplexity", perplexity, 150, "", "141.2 (test)"),
        below("Penn Treebank, order 5: fit and evaluate", seconds, 60, "s"),
        below(f"order 5: score {len(train):,} tokens", scored, 2, "s"),
        below("order 5: Σ p − 1 at worst, 200 contexts, × 10⁻¹²", 1e12 * worst, 1000, ""),
    ]


def main() -> None:
    if not FOLDER.exists():
        sys.exit(f"no Penn Treebank at {FOLDER}: set REGARD_DATA to the folder that holds ptb/")
    sentences, vocabulary = corpus("train"), {END: 0}
    train, valid = as_ids(sentences, vocabulary), as_ids(corpus("valid"), vocabulary)
    rows = penn_treebank(train, valid, len(vocabulary))
    try:
        import nltk

        rows += against_nltk(sentences, train, len(vocabulary))
        peer = f"nltk {nltk.__version__}"
    except ModuleNotFoundError:
        peer = "no nltk to race against: pip install nltk"
    print_table(f"n-gram, numpy {np.__version__}, {peer}", rows)


if __name__ == "__main__":
    main()
