"""A soft database: which word is most related to "time"?

    output = Σ α(q, kᵢ) vᵢ

A database compares the query with every key and hands out the value of the one that is equal. Let
the comparison be any score and the answer a weighted sum, and the database is attention.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.attention import Attended, Attention, Cosine, Dot, Look, Proportional
from regard.lectures.catalog import TITLES
from regard.lectures.figures import decimal, exact, fractions, plain, table
from regard.lectures.lesson import SEQUENCES, Lesson, step

KEYS = ("arrow", "flies", "like", "an", "time")
VALUES = ("time", "flies", "like", "an", "arrow")
MEANINGS = {  # what each word has of: passing, motion, being a thing, being a small word
    "arrow": [0.5, 1.0, 1.0, 0.0],
    "flies": [1.0, 1.0, 0.0, 0.0],
    "like": [0.0, 0.0, 0.0, 1.0],
    "an": [0.0, 0.0, 0.0, 1.0],
    "time": [1.0, 0.5, 0.0, 0.0],
}
STRENGTHS = (1.0, 5.0, 20.0, 100.0)


def one_hot(words: tuple[str, ...]) -> Tensor:
    return exact([[float(word == key) for key in KEYS] for word in words])


def hard(query: str) -> Attended:
    """Equal or not: the score of one-hot words is 1 or 0."""
    return Attention(Dot(), Proportional())(one_hot((query,)), one_hot(KEYS), one_hot(VALUES))


def soft(query: str, strength: float) -> Attended:
    """Related more or less: the cosine of two meanings, times a strength."""
    keys = exact([MEANINGS[word] for word in KEYS])
    asked = exact([MEANINGS[query]])
    with torch.no_grad():
        return Attention(Cosine(strength))(asked, keys, one_hot(VALUES))


def answer(read: Attended) -> str:
    """The word that has most of the output; values are one-hot over KEYS."""
    return KEYS[int(read.context[0].argmax())]


def shares(read: Attended) -> dict[str, float]:
    """How much of each word there is in the output."""
    return dict(zip(KEYS, plain(read.context[0]), strict=True))


def lesson() -> Lesson:
    exactly = hard("time")
    softly = {strength: soft("time", strength) for strength in STRENGTHS}
    scores = (one_hot(KEYS) * one_hot(VALUES)).sum(dim=-1).unsqueeze(0)  # key · value, no query
    written, _ = Proportional()(scores, None, scores)
    return Lesson(
        name="soft-database",
        title=TITLES["soft-database"],
        source=SEQUENCES,
        steps=(
            step(
                "Which word is most related to time? A database keeps a value under each key.",
                *table([("key", *KEYS), ("value", *VALUES)]),
            ),
            step(
                "Keys as one-hot vectors: the inner product is 1 where query and key are the same "
                "word, else 0, and all weight goes to that row.",
                *table([("key", *KEYS), ("weight", *(_cells(exactly.weights[0])))]),
                f"time → {answer(exactly)}",
            ),
            step(
                "Relatedness should not be hard-coded, and a word is related to several. So give "
                "each word a meaning (here four numbers, set by hand) and score by the cosine "
                "times a strength. The weaker it is, the more of the values are mixed.",
                *table(
                    [
                        ("strength", *KEYS),
                        *((f"{s:g}", *_cells(r.weights[0], 3)) for s, r in softly.items()),
                    ]
                ),
            ),
            step(
                "The output is a weighted sum of values. At every strength most of it is arrow; "
                "at a large one all of it is, and the soft database answers like the hard one.",
                *(f"strength {s:g}: {_said(r)}" for s, r in softly.items()),
            ),
        ),
        numbers={
            "query": "time",
            "keys": list(KEYS),
            "values": list(VALUES),
            "meanings": MEANINGS,
            "exact": {
                "scores": plain(exactly.scores[0]),
                "weights": plain(exactly.weights[0]),
                "answer": answer(exactly),
            },
            "soft": [
                {
                    "strength": s,
                    "scores": plain(r.scores[0]),
                    "weights": plain(r.weights[0]),
                    "output": shares(r),
                    "answer": answer(r),
                }
                for s, r in softly.items()
            ],
            "as_written": {"scores": plain(scores[0]), "weights": plain(written[0])},
        },
        slip=(
            "the lecture asks for the relatedness “between keys and values”; it is between queries "
            "and keys. Key against value, the query has no say: whatever is asked, the weights are "
            f"{fractions(written[0])}: on flies, like and an, where key and value are one word."
        ),
        looks=(
            Look.of_weights(
                torch.cat([exactly.weights, *(r.weights for r in softly.values())]),
                path="soft database",
                kind="memory",
                queries=["time =", *(f"time, β = {s:g}" for s in STRENGTHS)],
                keys=[f"{key} → {value}" for key, value in zip(KEYS, VALUES, strict=True)],
            ),
        ),
    )


def _cells(row: Tensor, digits: int = 4) -> list[str]:
    return [decimal(number, digits) for number in row.tolist()]


def _said(read: Attended) -> str:
    parts = sorted(shares(read).items(), key=lambda part: -part[1])
    return " + ".join(f"{share:.3f} {word}" for word, share in parts if share >= 0.0005)
