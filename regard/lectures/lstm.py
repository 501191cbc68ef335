"""The LSTM cell: c_t = f ⊙ c_{t-1} + i ⊙ c̃_t,  h_t = o ⊙ tanh(c_t)

The forget gate f says how much of the old cell stays, the input gate i how much of the new comes
in. With f = 1 and i = 0 the cell is unchanged, for as long as one likes.

Hochreiter & Schmidhuber (1997), section 4; Gers, Schmidhuber & Cummins (2000).
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.layers import Gates, LSTMCell, RecurrentState, watch_gates
from regard.lectures.catalog import TITLES
from regard.lectures.formatting import decimals, double, table, to_list
from regard.lectures.lesson import SEQUENCES, Lesson, step
from regard.lectures.seeding import fixed_seed
from regard.looking import Curves

CELL = double([[0.5, -1.0, 2.0]])
WORDS, SEED = 100, 9
FORGET = (0.5, 0.9, 0.99, 1.0)


def fix_gates(*, forget: float, input: float, output: float = 0.5) -> LSTMCell:
    """An LSTM cell whose gates are constants; only its candidate depends on the input."""
    cell = LSTMCell(input_size=2, hidden_size=CELL.shape[-1]).double()
    size = cell.hidden_size
    with torch.no_grad():
        for block, gate in ((0, input), (1, forget), (3, output)):  # i, f, c̃, o
            rows = slice(block * size, (block + 1) * size)
            for weight in (cell.weight_ih, cell.weight_hh, cell.bias_hh):
                weight[rows] = 0.0
            cell.bias_ih[rows] = double(gate).logit()  # ±∞ for a gate of 1 or 0, whose σ is exact
    return cell


@torch.no_grad()
def run(cell: LSTMCell, words: Tensor) -> Gates:
    """Gates and states over words (word, input), starting from the cell state CELL."""
    state = RecurrentState(torch.zeros_like(CELL), CELL)
    with watch_gates(cell) as seen:
        for word in words:
            _, state = cell(word.unsqueeze(0), state)
    (calls,) = seen.values()
    return Gates.join(calls)


def lesson() -> Lesson:
    with fixed_seed(SEED):
        words = torch.randn(WORDS, 2, dtype=torch.float64)
        keeping = run(fix_gates(forget=1.0, input=0.0), words)
        writing = run(fix_gates(forget=0.0, input=1.0), words[:1])
        fading = {f: run(fix_gates(forget=f, input=0.0), words) for f in FORGET}
    shares = {f: _share(gates) for f, gates in fading.items()}
    cell, output, hidden = (_last(keeping, part) for part in ("cell", "output", "hidden"))
    as_written = output * cell
    return Lesson(
        name="lstm",
        title=TITLES["lstm"],
        source=SEQUENCES,
        steps=(
            step(
                "A plain RNN always updates its state. An LSTM learns when to: gates between 0 "
                "and 1 choose between the old cell and the new content.",
                "c_t = f ⊙ c_{t-1} + i ⊙ c̃_t   h_t = o ⊙ tanh(c_t)",
            ),
            step(
                f"What is c_t if f = 1 and i = 0? Unchanged, after {WORDS} words as after one.",
                f"before  c = {decimals(CELL[0])}",
                f"after   c = {decimals(cell)}",
            ),
            step(
                "With f = 0 and i = 1 it is the other way round: the old is gone, the new is in.",
                f"c̃ = {decimals(_last(writing, 'candidate'))}",
                f"c = {decimals(_last(writing, 'cell'))}",
            ),
            step(
                "In between the cell fades as a power of f. A gradient that walks back through the "
                "cell fades by the same factor, so the network can learn how far it reaches.",
                *table(
                    [
                        ("words", *(f"f = {f:g}" for f in FORGET)),
                        *(
                            (str(n), *(f"{shares[f][n]:.4f}" for f in FORGET))
                            for n in (1, 10, 50, WORDS)
                        ),
                    ]
                ),
            ),
            step(
                "What the rest of the network sees is the tanh of the cell, times the output "
                f"gate, here o = {output[0]:g}; beside it the lecture's version without the tanh.",
                f"o ⊙ tanh(c) = {decimals(hidden)}",
                f"o ⊙ c       = {decimals(as_written)}",
            ),
        ),
        numbers={
            "words": WORDS,
            "kept": {
                "forget": to_list(_last(keeping, "forget")),
                "input": to_list(_last(keeping, "input")),
                "cell_before": to_list(CELL[0]),
                "cell_after": to_list(cell),
            },
            "written": {
                "candidate": to_list(_last(writing, "candidate")),
                "cell": to_list(_last(writing, "cell")),
            },
            "share_of_cell_left": [{"forget": f, "by_step": s} for f, s in shares.items()],
            "output_gate": to_list(output),
            "hidden": to_list(hidden),
            "as_written": {"hidden": to_list(as_written)},
        },
        slip=(
            "the lecture writes h = o ⊙ c; the usual cell, and torch's, is h = o ⊙ tanh(c), which "
            "keeps the output between −1 and 1 however much the cell has gathered."
        ),
        curves=(
            Curves(
                title="What is left of the cell",
                x_label="words read since",
                y_label="share of c left",
                x=tuple(float(n) for n in range(WORDS + 1)),
                series={f"f = {f:g}": tuple(s) for f, s in shares.items()},
            ),
        ),
    )


def _last(gates: Gates, part: str) -> Tensor:
    """One part of the cell after the last word, (hidden,)."""
    return gates.of(part)[0, -1]


def _share(gates: Gates) -> list[float]:
    """How much of the first cell there is before any word, after one, after two, …"""
    cells = torch.cat([CELL, gates.of("cell")[0]])  # (1 + word, hidden)
    shares: list[float] = to_list(cells.norm(dim=-1) / CELL.norm())
    return shares
