"""That trick was sick: a Backpack model in four dimensions, with its weights made by attention.

Every word has two sense vectors over (positive, negative, skateboarding, health). What a sentence
says is Σ over words i and senses ℓ of α_ℓi · C(xᵢ)_ℓ, and α_ℓi is what the other words say about
the topic of that sense. As attention: the query of a word is the topic evidence of the others, the
keys are the topics of its own senses, the values their sentiment.

Hewitt et al. (2023), "Backpack Language Models", section 3.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.attention import Attention, Dot, Look, Proportional
from regard.lectures.catalog import TITLES
from regard.lectures.formatting import decimals, double, fractions, table, to_list
from regard.lectures.lesson import BACKPACKS, Lesson, step

DIMENSIONS = ("positive", "negative", "skateboarding", "health")
SENSES = {
    "that": ("0000", "0000"),
    "trick": ("0010", "0000"),
    "was": ("0000", "0000"),
    "sick": ("1010", "0101"),
}
WORDS = tuple(SENSES)
VECTORS = double([[[float(digit) for digit in s] for s in senses] for senses in SENSES.values()])
SENTIMENT, TOPIC = double([1, 1, 0, 0]), double([0, 0, 1, 1])
# The queries as the lecture prints them: three rows, for four words.
LECTURE_Q = double([[0.0, 0.0, 2 / 3, 1 / 3], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0]])


def topics_of_words() -> Tensor:
    """What both senses of a word say about each topic, (word, dimension)."""
    return (VECTORS * TOPIC).sum(dim=1)


def evidence_of_others() -> Tensor:
    """The share of each topic in what the other words may mean, (word, dimension)."""
    topics = topics_of_words()
    others = topics.sum(dim=0) - topics
    return others / others.sum(dim=-1, keepdim=True)


def formula_5() -> Tensor:
    """α_ℓi as the lecture's formula (5) has it, 0/0 taken for 0, (word, sense)."""
    topics = topics_of_words()[:, 2:]  # (word, topic)
    shares = (topics / topics.sum(dim=-1, keepdim=True)).nan_to_num()  # each word on its own
    return shares.sum(dim=0) - shares


def lesson() -> Lesson:
    queries = evidence_of_others()
    keys, values = ((VECTORS * part).flatten(0, 1) for part in (TOPIC, SENTIMENT))  # (sense, 4)
    own = torch.eye(len(WORDS), dtype=torch.bool).repeat_interleave(2, dim=1)  # (word, sense)
    read = Attention(Dot(), Proportional())(queries, keys, values, own)
    alpha = read.weights.unflatten(-1, (len(WORDS), 2))  # (word i, word j, sense)
    weights = alpha.diagonal(dim1=0, dim2=1).T  # (word, sense)
    sentiment = read.context.sum(dim=0)  # (dimension,)
    answer = "".join(f"{number:.0f}" for number in sentiment.tolist())
    as_written = formula_5()
    sick = WORDS.index("sick")
    topicless = [w for w, t in zip(WORDS, topics_of_words().sum(dim=-1), strict=True) if t == 0]
    return Lesson(
        name="trick-was-sick",
        title=TITLES["trick-was-sick"],
        source=BACKPACKS,
        steps=(
            step(
                "Every word carries two senses over four dimensions: "
                f"{', '.join(DIMENSIONS)}. Only “sick” is of two minds.",
                *table([("", "sense 0", "sense 1"), *((w, *s) for w, s in SENSES.items())]),
            ),
            step(
                "The query of a word is what the others say about the topic, as shares of one: "
                "“sick” hears “trick” alone, “trick” hears both senses of “sick”, and “that” and "
                "“was” hear all three.",
                *table([(w, fractions(q)) for w, q in zip(WORDS, queries, strict=True)]),
            ),
            step(
                "The keys are the topics of the senses and the values their sentiment. A word "
                "weighs its own senses only, in proportion to query · key; a softmax would give "
                "even the wrong sense a share.",
                *table(
                    [
                        (w, f"α = {decimals(a)}", f"→ {decimals(v)}")
                        for w, a, v in zip(WORDS, weights, read.context, strict=True)
                    ]
                ),
            ),
            step(
                "For “sick” only “trick” speaks, and it speaks of skateboarding: "
                f"α = {decimals(weights[sick])}. "
                "Senses without a topic get no weight; they have no sentiment to give either.",
            ),
            step(
                "Summed over all senses, the sentence is positive, and owes it to the "
                "skateboarding sense of “sick” alone.",
                f"sentiment {answer}",
            ),
        ),
        numbers={
            "dimensions": list(DIMENSIONS),
            "words": list(WORDS),
            "senses": {word: list(senses) for word, senses in SENSES.items()},
            "queries": to_list(queries),
            "keys": to_list(keys.unflatten(0, (len(WORDS), 2))),
            "values": to_list(values.unflatten(0, (len(WORDS), 2))),
            "weights": to_list(weights),
            "alpha": to_list(alpha.permute(2, 0, 1)),
            "contributions": to_list(read.context),
            "sentiment": to_list(sentiment),
            "answer": answer,
            "as_written": {
                "formula_5": {w: to_list(a) for w, a in zip(WORDS, as_written, strict=True)},
                "formula_5_zero_by_zero": topicless,
                "Q": to_list(LECTURE_Q),
            },
        },
        slip=(
            "formula (5) normalises word by word before it sums, which is 0/0 for words without a "
            f"topic and gives “{WORDS[0]}” the weights {decimals(as_written[0], 1)}, "
            f"{as_written[0].sum():g} in all; the matrix Q of the same lecture sums first, and "
            f"shows {len(LECTURE_Q)} rows, {' '.join(map(fractions, LECTURE_Q))}, for {len(WORDS)} "
            "words. Here the sum comes first and every word has its row. For “sick” formula (5) "
            f"says {decimals(as_written[sick])} and the sum {decimals(weights[sick])}."
        ),
        looks=(
            Look.of_weights(
                alpha.permute(2, 0, 1),
                path="senses",
                kind="senses",
                queries=WORDS,
                keys=WORDS,
                heads=("sense 0", "sense 1"),
                mask=torch.eye(len(WORDS), dtype=torch.bool),
            ),
        ),
    )
