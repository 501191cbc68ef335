"""AABA: one query looks for the Bs in a string of As and Bs.

    scores sᵢ = kᵢ · q,   weights α = softmax(s),   output = Σ αᵢ eᵢ

The lecture takes e ≈ 3 to do the softmax in its head; a softmax of base 3 does just that.
"""

from __future__ import annotations

import math

from torch import Tensor

from regard.attention import Attended, Attention, Dot, Look, Softmax
from regard.lectures.catalog import TITLES
from regard.lectures.figures import decimals, exact, fractions, plain
from regard.lectures.lesson import SELF_ATTENTION, Lesson, step

A, B = [1.0, 0.0], [0.0, 1.0]
STRING = "AABA"
EMBEDDINGS = exact([{"A": A, "B": B}[letter] for letter in STRING])  # (position, 2)


def ask(queries: Tensor, base: float = math.e) -> Attended:
    """Look through the string; its embeddings are both keys and values."""
    return Attention(Dot(), Softmax(base=base))(queries, EMBEDDINGS, EMBEDDINGS)


def lesson() -> Lesson:
    in_the_head = ask(exact([B]), base=3)
    with_e = ask(exact([B]))
    average = ask(exact([[0.0, 0.0]]))
    strong = ask(exact([[0.0, 10.0]]))
    W_K, W_Q = exact([[1.0, 0.0], [0.0, 1.0]]), exact([[0.0, 0.0], [10.0, 10.0]])
    K, Q = EMBEDDINGS @ W_K.T, EMBEDDINGS @ W_Q.T  # kᵢ = W^K eᵢ, qᵢ = W^Q eᵢ
    everyone = Attention(Dot())(Q, K, EMBEDDINGS)
    return Lesson(
        name="aaba",
        title=TITLES["aaba"],
        source=SELF_ATTENTION,
        steps=(
            step(
                "The keys are the embeddings of A A B A, and the query asks for Bs.",
                "A = [1 0]   B = [0 1]",
                "keys = [1 0] [1 0] [0 1] [1 0]   q = [0 1]",
            ),
            step(
                "Each key is scored by its inner product with the query: sᵢ = kᵢ · q.",
                decimals(in_the_head.scores[0]),
            ),
            step(
                "A softmax makes weights of the scores. With e ≈ 3 it can be done in the head: "
                "3⁰ = 1 for each A, 3¹ = 3 for the B, 6 in all.",
                fractions(in_the_head.weights[0]),
            ),
            step(
                "The output is the sum of the embeddings, each times its weight.",
                f"{fractions(in_the_head.weights[0])} → {fractions(in_the_head.context[0])}",
            ),
            step(
                "With e as it is, 2.71828…, the same comes out a little softer.",
                f"{decimals(with_e.weights[0])} → {decimals(with_e.context[0])}",
            ),
            step(
                "A plain average, as in a deep averaging network, is the answer to a query that "
                "asks for nothing, q = [0 0]: every word weighs the same.",
                f"{fractions(average.weights[0])} → {fractions(average.context[0])}",
            ),
            step(
                "Half an A is no good answer to “any B?”: [0 1] would be. A longer query, "
                "q = [0 10], puts nearly all weight on the B.",
                f"scores {decimals(strong.scores[0])}",
                f"{decimals(strong.weights[0])} → {decimals(strong.context[0])}",
            ),
            step(
                "A network can learn to ask: W^K = I keeps the embeddings as keys, and "
                "W^Q = [[0 0] [10 10]] turns every embedding, A or B, into the query [0 10]. Now "
                "every word looks for Bs at once: self-attention, with scores S = QKᵀ.",
                *(
                    f"{letter} asks  {decimals(s)}   reads  {decimals(read)}"
                    for letter, s, read in zip(
                        STRING, everyone.scores, everyone.context, strict=True
                    )
                ),
            ),
        ),
        numbers={
            "keys": plain(EMBEDDINGS),
            "query": B,
            "scores": plain(in_the_head.scores[0]),
            "base_3": _numbers(in_the_head, as_fractions=True),
            "base_e": _numbers(with_e),
            "average": _numbers(average, as_fractions=True),
            "strong": {"query": [0.0, 10.0]} | _numbers(strong),
            "self_attention": {
                "W_K": plain(W_K),
                "W_Q": plain(W_Q),
                "queries": plain(Q),
                "scores": plain(everyone.scores),
                "weights": plain(everyone.weights),
                "output": plain(everyone.context),
            },
        },
        looks=(
            Look.of(in_the_head, path="base 3", queries=["B?"], keys=list(STRING)),
            Look.of(everyone, path="self-attention", queries=list(STRING), keys=list(STRING)),
        ),
    )


def _numbers(read: Attended, as_fractions: bool = False) -> dict[str, object]:
    numbers: dict[str, object] = {
        "weights": plain(read.weights[0]),
        "output": plain(read.context[0]),
    }
    if as_fractions:
        numbers["as_fractions"] = {
            "weights": fractions(read.weights[0]),
            "output": fractions(read.context[0]),
        }
    return numbers
