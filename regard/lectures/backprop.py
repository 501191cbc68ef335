"""Backpropagation by hand: ŷ = w·x + b,  r = y − ŷ,  ℓ = r²

    ∂ℓ/∂r = 2r    ∂ℓ/∂ŷ = −2r    ∂ℓ/∂b = −2r    ∂ℓ/∂wⱼ = −2r xⱼ

Chain rule and dynamic programming: values forward in topological order, gradients backward in the
reverse, and ∂ℓ/∂ŷ is worked out once though b and every wⱼ need it.
"""

from __future__ import annotations

from typing import Any

from regard.graph import Graph, Node, given, parameter
from regard.lectures.catalog import TITLES
from regard.lectures.lesson import SEQUENCES, Lesson, step

RATE = 0.03


def lesson() -> Lesson:
    x, y = given("x", [3.0, 1.0]), given("y", 8.0)
    w, b = parameter("w", [1.0, 2.0]), parameter("b", 1.0)
    guess = (w @ x + b).named("ŷ")
    r = (y - guess).named("r")
    graph = Graph((r**2).named("ℓ"))
    graph.backward()
    listing, drawing = graph.text(), graph.svg("ŷ = w·x + b, r = y − ŷ, ℓ = r²")
    values = {name: _plain(graph[name].value) for name in ("x", "y", "w", "b", "ŷ", "r", "ℓ")}
    gradients = {name: _plain(graph[name].gradient) for name in ("r", "ŷ", "b", "w")}
    residual, features = values["r"], values["x"]
    by_hand = {
        "r": 2 * residual,
        "ŷ": -2 * residual,
        "b": -2 * residual,
        "w": [-2 * residual * feature for feature in features],
    }
    for learned in (w, b):
        learned.value = learned.value - RATE * _known(learned)
    after = float(graph.forward())
    return Lesson(
        name="backprop",
        title=TITLES["backprop"],
        source=SEQUENCES,
        steps=(
            step(
                "A linear prediction, its residual and the squared loss.",
                "ŷ = w·x + b   r = y − ŷ   ℓ = r²",
                "x = [3 1]   y = 8   w = [1 2]   b = 1",
            ),
            step(
                "Forward, every node after the nodes it reads.",
                "ŷ = 1·3 + 2·1 + 1 = 6",
                "r = 8 − 6 = 2",
                "ℓ = 2² = 4",
            ),
            step(
                "Backward, every node before the nodes it reads: each passes on its own gradient "
                "times its derivative.",
                f"∂ℓ/∂r = 2r = {gradients['r']:g}",
                f"∂ℓ/∂ŷ = ∂ℓ/∂r · (−1) = −2r = {gradients['ŷ']:g}",
                f"∂ℓ/∂b = ∂ℓ/∂ŷ · 1 = −2r = {gradients['b']:g}",
                *(
                    f"∂ℓ/∂w{'₁₂'[j]} = ∂ℓ/∂ŷ · x{'₁₂'[j]} = −2r x{'₁₂'[j]} = {gradient:g}"
                    for j, gradient in enumerate(gradients["w"])
                ),
            ),
            step(
                "∂ℓ/∂ŷ is computed once and used three times; the order saves the work. The "
                "engine and the hand agree on every number of the graph.",
            ),
            step(
                f"A step of {RATE:g} times the gradient downhill, and the loss is smaller.",
                f"w − {RATE:g} · [-12 -4] = [1.36 2.12]   b − {RATE:g} · (-4) = 1.12",
                f"ℓ = {values['ℓ']:g} → {after:.4f}",
            ),
        ),
        numbers={
            "values": values,
            "gradients": gradients,
            "by_hand": by_hand,
            "rate": RATE,
            "loss_after_one_step": after,
        },
        drawing=drawing,
        listing=listing,
    )


def _known(node: Node) -> Any:
    assert node.gradient is not None  # backward has run
    return node.gradient


def _plain(value: Any) -> Any:
    return value.tolist()
