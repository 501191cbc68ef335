"""Backpropagation by hand: ŷ = w·x + b,  r = y − ŷ,  ℓ = r²

    ∂ℓ/∂r = 2r    ∂ℓ/∂ŷ = −2r    ∂ℓ/∂b = −2r    ∂ℓ/∂wⱼ = −2r xⱼ

Chain rule and dynamic programming: values forward in topological order, gradients backward in the
reverse, and ∂ℓ/∂ŷ is worked out once though b and every wⱼ need it.
"""

from __future__ import annotations

from typing import Any

from regard.graph import Graph, Node, data, parameter
from regard.lectures.catalog import TITLES
from regard.lectures.formatting import bracket
from regard.lectures.lesson import SEQUENCES, Lesson, step

FEATURES, TARGET = (3.0, 1.0), 8.0
WEIGHTS, BIAS = (1.0, 2.0), 1.0
RATE = 0.03
INDICES = "₁₂₃₄₅₆₇₈₉"


def lesson() -> Lesson:
    x, y = data("x", FEATURES), data("y", TARGET)
    w, b = parameter("w", WEIGHTS), parameter("b", BIAS)
    prediction = (w @ x + b).set_name("ŷ")
    r = (y - prediction).set_name("r")
    graph = Graph((r**2).set_name("ℓ"))
    graph.backward()
    listing, drawing = graph.text(), graph.svg("ŷ = w·x + b, r = y − ŷ, ℓ = r²")
    values = {name: graph[name].value.tolist() for name in ("x", "y", "w", "b", "ŷ", "r", "ℓ")}
    gradients = {name: _gradient(graph[name]).tolist() for name in ("r", "ŷ", "b", "w")}
    residual = values["r"]
    by_hand = {
        "r": 2 * residual,
        "ŷ": -2 * residual,
        "b": -2 * residual,
        "w": [-2 * residual * feature for feature in values["x"]],
    }
    for learned in (w, b):
        learned.value = learned.value - RATE * _gradient(learned)
    after = float(graph.forward())
    products = " + ".join(
        f"{_write(a)}·{_write(c)}" for a, c in zip(WEIGHTS, FEATURES, strict=True)
    )
    return Lesson(
        name="backprop",
        title=TITLES["backprop"],
        source=SEQUENCES,
        steps=(
            step(
                "A linear prediction, its residual and the squared loss.",
                "ŷ = w·x + b   r = y − ŷ   ℓ = r²",
                "   ".join(f"{name} = {_write(values[name])}" for name in ("x", "y", "w", "b")),
            ),
            step(
                "Forward, every node after the nodes it reads.",
                f"ŷ = {products} + {_write(values['b'])} = {_write(values['ŷ'])}",
                f"r = {_write(values['y'])} − {_write(values['ŷ'])} = {_write(residual)}",
                f"ℓ = {_write(residual)}² = {_write(values['ℓ'])}",
            ),
            step(
                "Backward, every node before the nodes it reads: each passes on its own gradient "
                "times its derivative.",
                f"∂ℓ/∂r = 2r = {_write(gradients['r'])}",
                f"∂ℓ/∂ŷ = ∂ℓ/∂r · (−1) = −2r = {_write(gradients['ŷ'])}",
                f"∂ℓ/∂b = ∂ℓ/∂ŷ · 1 = −2r = {_write(gradients['b'])}",
                *(
                    f"∂ℓ/∂w{j} = ∂ℓ/∂ŷ · x{j} = −2r x{j} = {_write(gradient)}"
                    for j, gradient in zip(INDICES, gradients["w"], strict=False)
                ),
            ),
            step(
                f"∂ℓ/∂ŷ is computed once and used {1 + len(WEIGHTS)} times; the order saves the "
                "work. The engine and the hand agree on every number of the graph.",
            ),
            step(
                f"A step of {_write(RATE)} times the gradient downhill, and the loss is smaller.",
                f"w − {_write(RATE)} · {_write(gradients['w'])} = {_write(w.value.tolist())}   "
                f"b − {_write(RATE)} · ({_write(gradients['b'])}) = {_write(b.value.tolist())}",
                f"ℓ = {_write(values['ℓ'])} → {after:.4f}",
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


def _gradient(node: Node) -> Any:
    assert node.gradient is not None  # backward has run
    return node.gradient


def _write(value: Any) -> str:
    """6 for 6.0, and [-12 -4] for several."""
    return bracket(map(_write, value)) if isinstance(value, list) else f"{value:g}"
