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
from regard.lectures.figures import decimals, exact, fractions, plain, table
from regard.lectures.lesson import BACKPACKS, Lesson, step

DIMENSIONS = ("positive", "negative", "skateboarding", "health")
SENSES = {
    "that": ("0000", "0000"),
    "trick": ("0010", "0000"),
    "was": ("0000", "0000"),
    "sick": ("1010", "0101"),
}
WORDS = tuple(SENSES)
VECTORS = exact([[[float(digit) for digit in s] for s in senses] for senses in SENSES.values()])
SENTIMENT, TOPIC = exact([1, 1, 0, 0]), exact([0, 0, 1, 1])


def evidence_of_the_others() -> Tensor:
    """The share of each topic in what the other words may mean, (word, dimension)."""
    topics = (VECTORS * TOPIC).sum(dim=1)  # (word, dimension), both senses together
    others = topics.sum(dim=0) - topics
    return others / others.sum(dim=-1, keepdim=True)


def formula_5() -> Tensor:
    """α_ℓi as the lecture's formula (5) has it, 0/0 taken for 0, (word, sense)."""
    topics = (VECTORS * TOPIC).sum(dim=1)[:, 2:]  # (word, topic)
    shares = (topics / topics.sum(dim=-1, keepdim=True)).nan_to_num()  # each word on its own
    return shares.sum(dim=0) - shares


def lesson() -> Lesson:
    queries = evidence_of_the_others()
    keys, values = ((VECTORS * kept).flatten(0, 1) for kept in (TOPIC, SENTIMENT))  # (sense, 4)
    own = torch.eye(len(WORDS), dtype=torch.bool).repeat_interleave(2, dim=1)  # (word, sense)
    read = Attention(Dot(), Proportional())(queries, keys, values, own)
    alpha = read.weights.unflatten(-1, (len(WORDS), 2))  # (word i, word j, sense)
    weights = alpha.diagonal(dim1=0, dim2=1).T  # (word, sense)
    sentiment = read.context.sum(dim=0)  # (dimension,)
    answer = "".join(f"{number:.0f}" for number in sentiment.tolist())
    written = formula_5()
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
                "For “sick” only “trick” speaks, and it speaks of skateboarding: α = (1, 0). "
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
            "queries": plain(queries),
            "keys": plain(keys.unflatten(0, (len(WORDS), 2))),
            "values": plain(values.unflatten(0, (len(WORDS), 2))),
            "weights": plain(weights),
            "alpha": plain(alpha.permute(2, 0, 1)),
            "contributions": plain(read.context),
            "sentiment": plain(sentiment),
            "answer": answer,
            "as_written": {
                "formula_5": {w: plain(a) for w, a in zip(WORDS, written, strict=True)},
                "formula_5_zero_by_zero": ["that", "was"],
                "Q": [[0.0, 0.0, 2 / 3, 1 / 3], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0]],
            },
        },
        slip=(
            "formula (5) normalises word by word before it sums, which is 0/0 for words without a "
            f"topic and gives “that” the weights {decimals(written[0], 1)}, 2 in all; the matrix Q "
            "of the same lecture sums first, and shows three rows, [0 0 2/3 1/3] [0 0 1 0] "
            "[0 0 1 0], for four words. Here the sum comes first and every word has its row. For "
            "“sick” both say (1, 0)."
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
