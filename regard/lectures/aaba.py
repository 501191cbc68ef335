"""AABA: one query looks for the Bs in a string of As and Bs.

    scores sᵢ = kᵢ · q,   weights α = softmax(s),   output = Σ αᵢ eᵢ

The lecture takes e ≈ 3 to do the softmax in its head; a softmax of base 3 does just that.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from regard.attention import Attended, Attention, Dot, Look, Softmax
from regard.lectures.catalog import TITLES
from regard.lectures.formatting import bracket, decimals, double, fractions, to_list
from regard.lectures.lesson import SELF_ATTENTION, Lesson, step

A, B = double([1.0, 0.0]), double([0.0, 1.0])
STRING = "AABA"
EMBEDDINGS = torch.stack([{"A": A, "B": B}[letter] for letter in STRING])  # (position, 2)
STRENGTH = 10.0  # of the longer query


def attend(query: Tensor, base: float = math.e) -> Attended:
    """Attention of one query over the string; its embeddings are both keys and values."""
    return Attention(Dot(), Softmax(base=base))(query.unsqueeze(0), EMBEDDINGS, EMBEDDINGS)


def lesson() -> Lesson:
    base_3, base_e = attend(B, base=3), attend(B)
    nothing, strong_query = torch.zeros_like(B), STRENGTH * B
    average, strong = attend(nothing), attend(strong_query)
    W_K = torch.eye(len(B), dtype=B.dtype)
    W_Q = strong_query.unsqueeze(1).expand(-1, len(B))  # both columns are the query
    K, Q = EMBEDDINGS @ W_K.T, EMBEDDINGS @ W_Q.T  # kᵢ = W^K eᵢ, qᵢ = W^Q eᵢ
    every = Attention(Dot())(Q, K, EMBEDDINGS)
    powers = 3.0 ** base_3.scores[0]
    return Lesson(
        name="aaba",
        title=TITLES["aaba"],
        source=SELF_ATTENTION,
        steps=(
            step(
                "The keys are the embeddings of A A B A, and the query asks for Bs.",
                f"A = {decimals(A)}   B = {decimals(B)}",
                f"keys = {' '.join(map(decimals, EMBEDDINGS))}   q = {decimals(B)}",
            ),
            step(
                "Each key is scored by its inner product with the query: sᵢ = kᵢ · q.",
                decimals(base_3.scores[0]),
            ),
            step(
                "A softmax makes weights of the scores. With e ≈ 3 it can be done in the head: "
                f"3⁰ = {powers.min():g} for each A, 3¹ = {powers.max():g} for the B, "
                f"{powers.sum():g} in all.",
                fractions(base_3.weights[0]),
            ),
            step(
                "The output is the sum of the embeddings, each times its weight.",
                f"{fractions(base_3.weights[0])} → {fractions(base_3.context[0])}",
            ),
            step(
                f"With e as it is, {math.e:.5f}…, the same comes out a little softer.",
                f"{decimals(base_e.weights[0])} → {decimals(base_e.context[0])}",
            ),
            step(
                "A plain average, as in a deep averaging network, is the answer to a query that "
                f"asks for nothing, q = {decimals(nothing)}: every word weighs the same.",
                f"{fractions(average.weights[0])} → {fractions(average.context[0])}",
            ),
            step(
                f"Half an A is no good answer to “any B?”: {decimals(B)} would be. A longer query, "
                f"q = {decimals(strong_query)}, puts nearly all weight on the B.",
                f"scores {decimals(strong.scores[0])}",
                f"{decimals(strong.weights[0])} → {decimals(strong.context[0])}",
            ),
            step(
                "A network can learn to ask: W^K = I keeps the embeddings as keys, and "
                f"W^Q = {bracket(map(decimals, W_Q))} turns every embedding, A or B, into the "
                f"query {decimals(Q[0])}. Now every word looks for Bs at once: self-attention, "
                "with scores S = QKᵀ.",
                *(
                    f"{letter} asks  {decimals(s)}   reads  {decimals(read)}"
                    for letter, s, read in zip(STRING, every.scores, every.context, strict=True)
                ),
            ),
        ),
        numbers={
            "keys": to_list(EMBEDDINGS),
            "query": to_list(B),
            "scores": to_list(base_3.scores[0]),
            "base_3": _numbers(base_3, as_fractions=True),
            "base_e": _numbers(base_e),
            "average": _numbers(average, as_fractions=True),
            "strong": {"query": to_list(strong_query)} | _numbers(strong),
            "self_attention": {
                "W_K": to_list(W_K),
                "W_Q": to_list(W_Q),
                "queries": to_list(Q),
                "scores": to_list(every.scores),
                "weights": to_list(every.weights),
                "output": to_list(every.context),
            },
        },
        looks=(
            Look.of(base_3, path="base 3", queries=["B?"], keys=list(STRING)),
            Look.of(every, path="self-attention", queries=list(STRING), keys=list(STRING)),
        ),
    )


def _numbers(read: Attended, as_fractions: bool = False) -> dict[str, object]:
    numbers: dict[str, object] = {
        "weights": to_list(read.weights[0]),
        "output": to_list(read.context[0]),
    }
    if as_fractions:
        numbers["as_fractions"] = {
            "weights": fractions(read.weights[0]),
            "output": fractions(read.context[0]),
        }
    return numbers
