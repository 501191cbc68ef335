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
from regard.lectures.formatting import decimal, double, fractions, table, to_list
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
    """(word, key), 1 where a word is the key."""
    return double([[float(word == key) for key in KEYS] for word in words])


def exact_lookup(query: str) -> Attended:
    """Attention by equality: the score of one-hot words is 1 or 0."""
    return Attention(Dot(), Proportional())(one_hot((query,)), one_hot(KEYS), one_hot(VALUES))


def soft_lookup(query: str, strength: float) -> Attended:
    """Attention by relatedness: the cosine of two meanings, times a strength."""
    keys = double([MEANINGS[word] for word in KEYS])
    queries = double([MEANINGS[query]])
    with torch.no_grad():
        return Attention(Cosine(strength))(queries, keys, one_hot(VALUES))


def answer(read: Attended) -> str:
    """The word that has most of the output; values are one-hot over KEYS."""
    return KEYS[int(read.context[0].argmax())]


def shares(read: Attended) -> dict[str, float]:
    """How much of each word there is in the output."""
    return dict(zip(KEYS, to_list(read.context[0]), strict=True))


def lesson() -> Lesson:
    exact = exact_lookup("time")
    soft = {strength: soft_lookup("time", strength) for strength in STRENGTHS}
    scores = (one_hot(KEYS) * one_hot(VALUES)).sum(dim=-1).unsqueeze(0)  # key · value, no query
    as_written, _ = Proportional()(scores, None, scores)
    weighed = [key for key, weight in zip(KEYS, as_written[0], strict=True) if weight]
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
                *table([("key", *KEYS), ("weight", *(_cells(exact.weights[0])))]),
                f"time → {answer(exact)}",
            ),
            step(
                "Relatedness should not be hard-coded, and a word is related to several. So give "
                f"each word a meaning (here {len(MEANINGS['time'])} numbers, set by hand) and "
                "score by the cosine "
                "times a strength. The weaker it is, the more of the values are mixed.",
                *table(
                    [
                        ("strength", *KEYS),
                        *((f"{s:g}", *_cells(r.weights[0], 3)) for s, r in soft.items()),
                    ]
                ),
            ),
            step(
                "The output is a weighted sum of values. At every strength most of it is arrow; "
                "at a large one all of it is, and the soft database answers like the hard one.",
                *(f"strength {s:g}: {_write_sum(r)}" for s, r in soft.items()),
            ),
        ),
        numbers={
            "query": "time",
            "keys": list(KEYS),
            "values": list(VALUES),
            "meanings": MEANINGS,
            "exact": {
                "scores": to_list(exact.scores[0]),
                "weights": to_list(exact.weights[0]),
                "answer": answer(exact),
            },
            "soft": [
                {
                    "strength": s,
                    "scores": to_list(r.scores[0]),
                    "weights": to_list(r.weights[0]),
                    "output": shares(r),
                    "answer": answer(r),
                }
                for s, r in soft.items()
            ],
            "as_written": {"scores": to_list(scores[0]), "weights": to_list(as_written[0])},
        },
        slip=(
            "the lecture asks for the relatedness “between keys and values”; it is between queries "
            "and keys. Key against value, the query has no say: whatever is asked, the weights are "
            f"{fractions(as_written[0])}: on {', '.join(weighed)}, where key and value are one "
            "word."
        ),
        looks=(
            Look.of_weights(
                torch.cat([exact.weights, *(r.weights for r in soft.values())]),
                path="soft database",
                kind="memory",
                queries=["time =", *(f"time, β = {s:g}" for s in STRENGTHS)],
                keys=[f"{key} → {value}" for key, value in zip(KEYS, VALUES, strict=True)],
            ),
        ),
    )


def _cells(row: Tensor, digits: int = 4) -> list[str]:
    return [decimal(number, digits) for number in row.tolist()]


def _write_sum(read: Attended) -> str:
    parts = sorted(shares(read).items(), key=lambda part: -part[1])
    return " + ".join(f"{share:.3f} {word}" for word, share in parts if share >= 0.0005)
