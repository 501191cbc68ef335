"""What an RNN remembers: h_i ≈ Σ_j V^(i−j) W w_j

Without its tanh, a recurrent network is a sum over all words so far, and word j comes to h_i
through V, once for every step in between. What is left of it goes as ‖V‖^(i−j): it fades, stays or
explodes, and the gradient on its way back does the same.

Bengio, Simard & Frasconi (1994); Pascanu, Mikolov & Bengio (2013), section 2.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.layers import Recurrent, gradient_flow
from regard.lectures.catalog import TITLES
from regard.lectures.formatting import double, max_difference, table, to_list
from regard.lectures.lesson import SELF_ATTENTION, Lesson, step
from regard.looking import Curves

NORMS = (0.9, 1.0, 1.1)
STEPS = 100
STEPS_SHOWN = (1, 10, 50, 100)
SWAP = double([[0.0, 1.0], [1.0, 0.0]])
"""V is this times its norm. It turns the vector over and changes no length, and it has no negative
entry: a ReLU that never sees a negative number is not there, and the network is linear."""
WORD = double([3.0, 4.0])


def network(kind: str, norm: float) -> Recurrent:
    """h_i = f(w_i + V h_{i-1}) with W = I, no bias and ‖V‖ = norm."""
    recurrent = Recurrent(kind, input_size=2, hidden_size=2).double()
    (cell,) = recurrent.cells
    with torch.no_grad():
        for weight in cell.parameters():
            nn.init.zeros_(weight)
        cell.get_parameter("weight_ih").copy_(torch.eye(2))
        cell.get_parameter("weight_hh").copy_(norm * SWAP)
    return recurrent


def impulse() -> Tensor:
    """One word followed by zeros, (1, time, 2)."""
    words = torch.zeros(1, STEPS + 1, 2, dtype=torch.float64)
    words[0, 0] = WORD
    return words


@torch.no_grad()
def share_left(kind: str, norm: float) -> list[float]:
    """‖h_i‖ / ‖W w_1‖ at every step since the word."""
    hidden, _ = network(kind, norm)(impulse())
    shares: list[float] = to_list(hidden[0].norm(dim=-1) / WORD.norm())
    return shares


def gradient_share(norm: float) -> list[float]:
    """‖∂loss/∂h_i‖ for a loss at the end, as a share of what it is there, from the end back."""
    linear = network("rnn-relu", norm)
    gradient = gradient_flow(linear, impulse(), lambda out: out[0][0, -1].sum())
    shares: list[float] = to_list((gradient / gradient[-1]).flip(0))
    return shares


@torch.no_grad()
def unrolling_error(norm: float, words: Tensor) -> float:
    """The largest difference between Σ V^(i−j) W w_j and the last state, for words (word, 2)."""
    hidden, _ = network("rnn-relu", norm)(words.unsqueeze(0))
    powers = [torch.linalg.matrix_power(norm * SWAP, len(words) - 1 - j) for j in range(len(words))]
    total = torch.stack([V @ w for V, w in zip(powers, words, strict=True)]).sum(dim=0)
    return max_difference(hidden[0, -1], total)


def lesson() -> Lesson:
    linear = {norm: share_left("rnn-relu", norm) for norm in NORMS}
    with_tanh = {norm: share_left("rnn", norm) for norm in NORMS}
    back = {norm: gradient_share(norm) for norm in NORMS}
    sentence = double([[1.0, 2.0], [3.0, 1.0], [0.0, 2.0], [2.0, 2.0], [1.0, 0.0]])
    errors = {norm: unrolling_error(norm, sentence) for norm in NORMS}
    return Lesson(
        name="rnn-memory",
        title=TITLES["rnn-memory"],
        source=SELF_ATTENTION,
        steps=(
            step(
                "An RNN adds each word to what it had before, moved by V. Leave the tanh out and "
                "unroll it: every earlier word is still there, V to the power of its age.",
                "h_i = tanh(W w_i + V h_{i-1}) ≈ Σ_j V^(i−j) W w_j",
            ),
            step(
                f"On {len(sentence)} words, the network and the sum agree.",
                f"largest difference {max(errors.values()):.0e}",
            ),
            step(
                "One word and then silence. What is left of the word after so many steps is "
                "‖V‖ to that power: it fades, it stays, or it drowns all that comes later.",
                *_rows(linear),
            ),
            step(
                "With the tanh nothing explodes, but nothing stays as it was either: at ‖V‖ = 1 "
                "the word fades slowly, and above it the network settles where it would have "
                "settled after almost any word.",
                *_rows(with_tanh),
            ),
            step(
                "The gradient of a loss at the end walks the same road back, and what does not "
                "arrive at a word cannot teach it anything.",
                *_rows(back),
            ),
        ),
        numbers={
            "steps": STEPS,
            "word": to_list(WORD),
            "unrolled_difference": {f"{n:g}": error for n, error in errors.items()},
            "share_left": {f"{n:g}": shares for n, shares in linear.items()},
            "share_left_with_tanh": {f"{n:g}": shares for n, shares in with_tanh.items()},
            "gradient": {f"{n:g}": shares for n, shares in back.items()},
        },
        curves=(
            _curves("What is left of a word", "share left", linear, log=True),
            _curves("The same through tanh", "share left", with_tanh, log=True),
        ),
    )


def _rows(shares: dict[float, list[float]]) -> tuple[str, ...]:
    return table(
        [
            ("steps", *(f"‖V‖ = {norm:g}" for norm in NORMS)),
            *((str(n), *(_share(shares[norm][n]) for norm in NORMS)) for n in STEPS_SHOWN),
        ]
    )


def _share(share: float) -> str:
    return f"{share:.4g}" if share < 100 else f"{share:,.1f}"


def _curves(title: str, y_label: str, shares: dict[float, list[float]], log: bool) -> Curves:
    return Curves(
        title=title,
        x_label="steps since the word",
        y_label=y_label,
        x=tuple(float(n) for n in range(STEPS + 1)),
        series={f"‖V‖ = {norm:g}": tuple(values) for norm, values in shares.items()},
        log=log,
    )
