"""She is eating a green apple: the word apple reads a weighted sum of the words before it.

v_apple = .1 v_she + .1 v_is + .5 v_eating + .1 v_a + .2 v_green
"""

from __future__ import annotations

import torch

from regard.attention import Attention, Dot, Given, Look, StrictlyCausal
from regard.lectures.catalog import TITLES
from regard.lectures.formatting import decimal, decimals, double, to_list
from regard.lectures.lesson import MODELS, Lesson, step

WORDS = ("she", "is", "eating", "a", "green", "apple")
WEIGHTS = double([[0.1, 0.1, 0.5, 0.1, 0.2, 0.0]])
VALUES = torch.eye(len(WORDS), dtype=torch.float64)  # one dimension a word, to see who is in it


def lesson() -> Lesson:
    earlier = StrictlyCausal()
    visible: list[bool] = earlier.dense(1, len(WORDS))[0, 0].tolist()
    apple = VALUES[-1:]  # (1, word), the last query stands beside the last key
    given = Attention(Dot(), Given(WEIGHTS))(apple, VALUES, VALUES, earlier)
    # Any scores that are logarithms of the weights, up to a constant, have them as their softmax.
    keys = WEIGHTS.log().clamp(min=-100.0).T  # (word, 1)
    from_scores = Attention(Dot())(double([[1.0]]), keys, VALUES, earlier)
    every = Attention(Dot())(VALUES, VALUES, VALUES, earlier)
    formula = " + ".join(
        f"{decimal(weight, 1)} {word}"
        for word, weight in zip(WORDS, given.context[0].tolist(), strict=True)
        if weight
    )
    return Lesson(
        name="apple",
        title=TITLES["apple"],
        source=MODELS,
        steps=(
            step(
                "The query of apple meets the keys of the words before it, and the lecture "
                "supposes the softmax came out as these weights.",
                "  ".join(WORDS[:-1]),
                decimals(given.weights[0, :-1], 1),
            ),
            step("What apple reads is the sum of their values.", f"v_apple = {formula}"),
            step(
                "Only strictly earlier words may be seen, so apple does not look at itself.",
                f"may be seen: {_words_where(visible)}",
                f"hidden: {_words_where([not may for may in visible])}",
            ),
            step(
                "The weights are the softmax of scores q · k such as their logarithms.",
                f"ln → {decimals(from_scores.scores[0, :-1])}",
                f"softmax → {decimals(from_scores.weights[0, :-1], 1)}",
            ),
            step(
                "Under the same rule the first word, she, may look nowhere, and reads zeros.",
                f"v_she = {decimals(every.context[0])}",
            ),
        ),
        numbers={
            "words": list(WORDS),
            "weights": to_list(given.weights[0, :-1]),
            "visible": visible,
            "v_apple": dict(zip(WORDS, to_list(given.context[0]), strict=True)),
            "scores": to_list(from_scores.scores[0, :-1]),
            "softmax_of_scores": to_list(from_scores.weights[0, :-1]),
            "v_she": to_list(every.context[0]),
        },
        looks=(Look.of(given, path="apple", queries=["apple"], keys=WORDS),),
    )


def _words_where(mask: list[bool]) -> str:
    return " ".join(word for word, shown in zip(WORDS, mask, strict=True) if shown)
