"""SQL as attention: Similarity(q, k, v) = Σ Similarity(q, kᵢ) × vᵢ

A WHERE clause compares what is asked with the key of every row; the similarity is 1 or 0. Written
with characters as one-hot vectors, `=` and `LIKE` are inner products, and the soft version of both
is a softmax over the number of characters that agree.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.attention import Attended, Attention, Dot, Look, Prepared, Proportional, Score, Softmax
from regard.attention.comparisons import Comparison, Table
from regard.lectures.catalog import TITLES
from regard.lectures.figures import decimals, fractions, plain, table
from regard.lectures.lesson import MODELS, Lesson, step

PERSONS = (
    ("005123174812", "Ali", "Ahmadi"),
    ("015843268901", "Mohammad Reza", "Ali Mohammadi"),
    ("005123174823", "Ashkan", "Mohammadi"),
)
EQUAL, LIKE, MISTYPED = "015843268901", "00512317%", "015843268907"
LENGTH = 12


def characters(text: str) -> Tensor:
    """Twelve places of ten digits, one-hot, laid end to end; `%` leaves its places at zero."""
    places = torch.zeros(LENGTH, 10, dtype=torch.float64)
    for place, digit in enumerate(text.removesuffix("%")):
        places[place, int(digit)] = 1.0
    return places.flatten()


KEYS = torch.stack([characters(person[0]) for person in PERSONS])  # (row, place × digit)
ROWS = torch.eye(len(PERSONS), dtype=torch.float64)


class Agrees(Score):
    """score(q, k) = 1 if q · k = q · q, else 0

    Every character asked for is there: `=` when all twelve are asked for, `LIKE` when only the
    first few are.
    """

    def compare(self, queries: Tensor, keys: Prepared) -> Comparison:
        asked = queries.square().sum(dim=-1, keepdim=True)  # (query, 1)
        return Table((queries @ keys.keys.mT == asked).to(queries.dtype))  # (query, row)


def where(query: str) -> Attended:
    """The rows a database selects. Where nothing agrees, nothing is read."""
    return Attention(Agrees(), Proportional())(characters(query).unsqueeze(0), KEYS, ROWS)


def soft_where(query: str) -> Attended:
    """The same query, answered by how many characters agree."""
    return Attention(Dot(), Softmax())(characters(query).unsqueeze(0), KEYS, ROWS)


def selected(read: Attended) -> list[str]:
    return [" ".join(PERSONS[i][1:]) for i, w in enumerate(read.weights[0].tolist()) if w > 0]


def lesson() -> Lesson:
    queries = {"= '" + EQUAL + "'": EQUAL, "LIKE '" + LIKE + "'": LIKE}
    queries["= '" + MISTYPED + "'"] = MISTYPED
    reads = {clause: (where(query), soft_where(query)) for clause, query in queries.items()}
    (equal, _), (like, _), (mistyped, forgiving) = reads.values()
    return Lesson(
        name="sql",
        title=TITLES["sql"],
        source=MODELS,
        steps=(
            step("The table PERSONS: the ids are keys, the rows are values.", *table(PERSONS)),
            step(
                "An id is twelve places of ten digits, one-hot, so query · key counts the places "
                "that agree. `=` asks that all twelve do: similarity 1 for one row, 0 for others.",
                f"SELECT … WHERE ID = '{EQUAL}'",
                f"similarity {decimals(equal.scores[0])}   weights {fractions(equal.weights[0])}",
                f"→ {', '.join(selected(equal))}",
            ),
            step(
                "`LIKE` leaves the places behind % at zero: only the first eight are asked for. "
                "Two rows agree; as weights that add up to 1, each gets a half.",
                f"SELECT … WHERE ID LIKE '{LIKE}'",
                f"similarity {decimals(like.scores[0])}   weights {fractions(like.weights[0])}",
                f"→ {', '.join(selected(like))}",
            ),
            step(
                "Softly: a softmax over the number of places that agree answers the same, almost.",
                *table(
                    [
                        (clause, f"agree {decimals(s.scores[0])}", decimals(s.weights[0]))
                        for clause, (_, s) in reads.items()
                    ]
                ),
            ),
            step(
                f"With the last digit mistyped, '{MISTYPED}', the database finds nobody and reads "
                "nothing; the soft version still finds the row that was meant.",
                f"hard {decimals(mistyped.weights[0])}   soft {decimals(forgiving.weights[0])}",
            ),
        ),
        numbers={
            "persons": [list(person) for person in PERSONS],
            "queries": [
                {
                    "where": f"ID {clause}",
                    "similarity": plain(hard.scores[0]),
                    "weights": plain(hard.weights[0]),
                    "selected": selected(hard),
                    "soft": {
                        "agreeing_characters": plain(soft.scores[0]),
                        "weights": plain(soft.weights[0]),
                    },
                }
                for clause, (hard, soft) in reads.items()
            ],
        },
        looks=(
            Look.of_weights(
                torch.cat([r.weights for pair in zip(*reads.values(), strict=True) for r in pair]),
                path="PERSONS",
                kind="memory",
                queries=["=", "LIKE", "= mistyped", "softly =", "softly LIKE", "softly mistyped"],
                keys=[person[0] for person in PERSONS],
            ),
        ),
    )
