"""python -m benchmarks.watching: what it costs to watch a forward pass, in time and memory.

A Transformer of GPT-2's small size with random weights, ours and transformers'; beside it
transformers' own way to see attentions, its eager mode with `output_attentions=True`. Measure on a
quiet machine; the table takes about four minutes on two cores.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn

from benchmarks.memory import measured, peak_megabytes
from benchmarks.racing import Row, below, compared, print_table, race
from regard.attention import watch
from regard.data.batches import Words
from regard.models import GPT2, GPT2Config

VOCABULARY, LAYERS, HEADS = 50257, 12, 12
Forward = Callable[[], Any]


def make_ours(tokens: int) -> tuple[nn.Module, Forward]:
    """GPT-2 small as our language model, and a forward pass of it."""
    config = GPT2Config(
        vocabulary_size=VOCABULARY,
        longest=tokens,
        model_size=768,
        layers=LAYERS,
        heads=HEADS,
        feedforward_size=3072,
    )
    model, ids = GPT2(config).eval(), torch.randint(VOCABULARY, (1, tokens))
    return model, lambda: model(Words.of_ids(ids))


def make_theirs(tokens: int, way: str = "sdpa", head: bool = True) -> tuple[nn.Module, Forward]:
    """GPT-2 small of transformers, with or without its output layer."""
    from transformers import GPT2Config, GPT2LMHeadModel, GPT2Model

    config = GPT2Config(n_positions=tokens, attn_implementation=way)
    model = (GPT2LMHeadModel if head else GPT2Model)(config).eval()
    ids = torch.randint(VOCABULARY, (1, tokens))
    attentions = way == "eager"
    return model, lambda: model(ids, use_cache=False, output_attentions=attentions)


def run(model: nn.Module, forward: Forward, watched: bool) -> Any:
    """One forward pass; what was seen is held until it ends, and then let go."""
    with torch.no_grad(), watch(model) if watched else nullcontext({}) as seen:
        return forward(), seen


def times() -> list[Row]:
    """Watched against unwatched, taking turns."""
    rows = []
    (mine, forward), (theirs, their_forward) = make_ours(1024), make_theirs(1024)
    eager, eager_forward = make_theirs(1024, "eager")
    took = race(
        [
            lambda: run(mine, forward, True),
            lambda: run(mine, forward, False),
            lambda: run(theirs, their_forward, True),
            lambda: run(theirs, their_forward, False),
            lambda: run(eager, eager_forward, False),
        ],
        rounds=9,
    )
    rows.append(compared("1,024 tokens, regard's: watched", took[0], took[1], at_most=1.05))
    rows.append(compared("1,024 tokens, GPT-2: watched", took[2], took[3], at_most=1.05))
    alone = compared("beside it, eager with attentions", took[4], took[3], at_most=float("inf"))
    rows.append(Row(alone.what, "", f"{took[4]:.2f} ms", alone.ratio, "", True))
    return rows


CASES: dict[str, Callable[[], tuple[nn.Module, Forward]]] = {
    "ours": lambda: make_ours(1024),
    "theirs": lambda: make_theirs(1024),
    "eager": lambda: make_theirs(1024, "eager"),
    "long": lambda: make_theirs(4096, head=False),
}


def remember(case: str) -> float:
    """Megabytes at the highest point of a pass, in this process."""
    name, _, how = case.partition("-")
    model, forward = CASES[name]()

    def work() -> None:
        _, seen = run(model, forward, how != "")
        if how == "rows":
            seen["h.5.attn"][0].weights_of(heads=3, rows=slice(1024, 1088)).sum()

    return measured(work)


def memory() -> list[Row]:
    """How much more a watched pass takes, each in a process of its own."""
    # Large blocks go back as soon as they are free: what malloc keeps would differ by 80 MB from
    # one run to the next.
    os.environ["MALLOC_MMAP_THRESHOLD_"] = str(1 << 20)
    peaks = {
        case: peak_megabytes("benchmarks.watching", case)
        for case in (
            "ours",
            "ours-watched",
            "theirs",
            "theirs-watched",
            "eager",
            "long",
            "long-rows",
        )
    }
    eager = peaks["eager"] - peaks["theirs"]
    eager_long = LAYERS * HEADS * 4096**2 * 4 / 2**20
    return [
        below("regard's, more memory", peaks["ours-watched"] - peaks["ours"], 80, "MB"),
        below(
            "GPT-2, more memory; eager beside it",
            peaks["theirs-watched"] - peaks["theirs"],
            80,
            "MB",
            f"{eager:.0f} MB",
        ),
        below(
            "4,096 tokens: watched, then 64 rows; eager holds",
            peaks["long-rows"] - peaks["long"],
            1024,
            "MB",
            f"{eager_long:.0f} MB",
        ),
    ]


def main() -> None:
    if sys.argv[1:2] == ["--memory"]:
        print(remember(sys.argv[2]))
        return
    print_table(f"Watching, {torch.get_num_threads()} threads", [*times(), *memory()])


if __name__ == "__main__":
    main()
