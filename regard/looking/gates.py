"""Looks at the gates of a recurrent network: what was let in, kept and shown, word by word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from regard.attention import Label, Look
from regard.layers.gates import DIRECTIONS, Gates

BETWEEN_0_AND_1 = ("input", "forget", "output", "reset", "update")


def make_gate_looks(
    seen: Mapping[str, Sequence[Gates]],
    words: Sequence[str | Label],
    *,
    names: Sequence[str] | None = None,
    text: str | None = None,
    row: int = 0,
) -> list[Look]:
    """A look for each layer and direction that `watch_gates` recorded of one text.

    A map for each gate, a row for each unit, a column for each word. `names` are those of
    `Gates.names`; if left out, the gates proper, and the state of a network that has none.
    """
    looks = []
    for path, calls in seen.items():
        if not calls:
            continue
        gates = Gates.join(list(calls))
        own = [name for name in gates.names if name in BETWEEN_0_AND_1] or ["hidden"]
        chosen = own if names is None else list(names)
        for layer, directions in enumerate(gates.steps):
            for direction in DIRECTIONS[: len(directions)]:
                values = [gates.of(n, layer=layer, direction=direction)[row] for n in chosen]
                table = torch.stack(values).mT  # (gate, unit, word)
                looks.append(
                    Look.of_weights(
                        table,
                        path=f"{path}.{layer}.{direction}",
                        kind="gates",
                        heads=tuple(chosen),
                        queries=[str(unit) for unit in range(table.shape[1])],
                        keys=words,
                        key_text=text,
                    )
                )
    return looks
