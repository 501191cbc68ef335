"""SQL as attention: Similarity(q, k, v) = Σ Similarity(q, kᵢ) × vᵢ

A WHERE clause compares what is asked with the key of every row; the similarity is 1 or 0. Written
with characters as one-hot vectors, `=` and `LIKE` are inner products, and the soft version of both
is a softmax over the number of characters that agree. The colder it is, the more it answers like
the database; where nothing agrees whole, it takes what comes nearest.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.attention import Attended, Attention, Dot, Look, Prepared, Proportional, Score, Softmax
from regard.attention.comparisons import Comparison, Table
from regard.lectures.catalog import TITLES
from regard.lectures.formatting import decimal, decimals, fraction, fractions, table, to_list
from regard.lectures.lesson import MODELS, Lesson, step

PERSONS = (
    ("005123174812", "Ali", "Ahmadi"),
    ("015843268901", "Mohammad Reza", "Ali Mohammadi"),
    ("005123174823", "Ashkan", "Mohammadi"),
)
EQUAL, LIKE, MISTYPED = "015843268901", "00512317%", "015843268907"
LENGTH = len(EQUAL)
TEMPERATURES = (5.0, 1.0, 0.1)


def characters(text: str) -> Tensor:
    """One-hot digits of an id, concatenated, (place × digit); `%` leaves its places at zero."""
    places = torch.zeros(LENGTH, 10, dtype=torch.float64)
    for place, digit in enumerate(text.removesuffix("%")):
        places[place, int(digit)] = 1.0
    return places.flatten()


KEYS = torch.stack([characters(person[0]) for person in PERSONS])  # (row, place × digit)
ROWS = torch.eye(len(PERSONS), dtype=torch.float64)


class AllMatch(Score):
    """score(q, k) = 1 if q · k = q · q, else 0

    Every character asked for is there: `=` when all of an id are asked for, `LIKE` when only the
    first few are.
    """

    def compare(self, queries: Tensor, keys: Prepared) -> Comparison:
        all_of_it = queries.square().sum(dim=-1, keepdim=True)  # (query, 1)
        return Table((queries @ keys.keys.mT == all_of_it).to(queries.dtype))  # (query, row)


def where(query: str) -> Attended:
    """The rows a database selects. Where nothing agrees, nothing is read."""
    return Attention(AllMatch(), Proportional())(characters(query).unsqueeze(0), KEYS, ROWS)


def soft_where(query: str, temperature: float = 1.0) -> Attended:
    """The same query, answered by how many characters agree; near temperature 0, by the most."""
    return Attention(Dot(), Softmax(temperature))(characters(query).unsqueeze(0), KEYS, ROWS)


def select_names(read: Attended) -> list[str]:
    """The persons whose rows have any weight."""
    return [" ".join(PERSONS[i][1:]) for i, w in enumerate(read.weights[0].tolist()) if w > 0]


def lesson() -> Lesson:
    queries = {"= '" + EQUAL + "'": EQUAL, "LIKE '" + LIKE + "'": LIKE}
    queries["= '" + MISTYPED + "'"] = MISTYPED
    hard = {clause: where(query) for clause, query in queries.items()}
    soft = {
        clause: [soft_where(query, each) for each in TEMPERATURES]
        for clause, query in queries.items()
    }
    equal, like, _ = hard.values()
    nearly = soft[f"= '{MISTYPED}'"][0].scores[0]
    names = ["=", "LIKE", "mistyped"]
    return Lesson(
        name="sql",
        title=TITLES["sql"],
        source=MODELS,
        steps=(
            step("The table PERSONS: the ids are keys, the rows are values.", *table(PERSONS)),
            step(
                f"An id is {LENGTH} places of ten digits, one-hot, so query · key counts the "
                f"places that agree. `=` asks that all {LENGTH} do: similarity 1 for one row, 0 "
                "for others.",
                f"SELECT … WHERE ID = '{EQUAL}'",
                f"similarity {decimals(equal.scores[0])}   weights {fractions(equal.weights[0])}",
                f"→ {', '.join(select_names(equal))}",
            ),
            step(
                f"`LIKE` leaves the places behind % at zero: only the first {len(LIKE) - 1} are "
                f"asked for. {decimal(float(like.scores.sum()))} rows agree; as weights that add "
                f"up to 1, each gets {fraction(float(like.weights.max()))}.",
                f"SELECT … WHERE ID LIKE '{LIKE}'",
                f"similarity {decimals(like.scores[0])}   weights {fractions(like.weights[0])}",
                f"→ {', '.join(select_names(like))}",
            ),
            step(
                "Softly: a softmax over the number of places that agree. When it is warm every row "
                "has a share; the colder it is, the nearer it comes to the database's answer.",
                *table(
                    [
                        ("", "hard", *(f"temperature τ = {each:g}" for each in TEMPERATURES)),
                        *(
                            (
                                clause,
                                fractions(hard[clause].weights[0]),
                                *(decimals(read.weights[0], 3) for read in reads),
                            )
                            for clause, reads in soft.items()
                        ),
                    ]
                ),
            ),
            step(
                f"With the last digit mistyped, '{MISTYPED}', the database finds nobody and reads "
                "nothing; the soft version, however cold, still finds the row that was meant.",
                f"places that agree {decimals(nearly)}: the most is "
                "enough, where the database asks for all",
            ),
        ),
        numbers={
            "persons": [list(person) for person in PERSONS],
            "queries": [
                {
                    "where": f"ID {clause}",
                    "similarity": to_list(read.scores[0]),
                    "weights": to_list(read.weights[0]),
                    "selected": select_names(read),
                    "soft": {
                        "agreeing_characters": to_list(soft[clause][0].scores[0]),
                        "temperatures": [
                            {"temperature": each, "weights": to_list(weighed.weights[0])}
                            for each, weighed in zip(TEMPERATURES, soft[clause], strict=True)
                        ],
                    },
                }
                for clause, read in hard.items()
            ],
        },
        looks=(
            Look.of_weights(
                torch.cat(
                    [
                        each.weights
                        for clause, read in hard.items()
                        for each in (read, *soft[clause])
                    ]
                ),
                path="PERSONS",
                kind="memory",
                queries=[
                    f"{name}{how}"
                    for name in names
                    for how in ("", *(f", τ = {each:g}" for each in TEMPERATURES))
                ],
                keys=[person[0] for person in PERSONS],
            ),
        ),
    )
