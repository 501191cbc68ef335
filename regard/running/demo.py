"""What the demo asks of its translator: numbers it never saw, and whether it looks where it
should."""

from __future__ import annotations

from collections.abc import Sequence

from regard.data.numbers import NumberExample
from regard.running.run import Run
from regard.tasks.translation import number_names


def unseen_numbers(run: Run, count: int) -> list[NumberExample]:
    """Different numbers of the test split, which training never draws from."""
    generator = run.recipe.data.generator
    if generator is None:
        raise ValueError(f"{run.folder} was not trained on generated numbers")
    examples = number_names(generator).take(3 * count, run.recipe.seed, "test")
    different = {e.number: e for e in examples if e.number > 99}
    return list(different.values())[:count]


def pointing(run: Run, examples: Sequence[NumberExample]) -> float:
    """How often the strongest weight of a target piece falls on a source word it is linked to.

    Only pieces that have a link count, and the translator is made to say the right answer.
    """
    right = linked_pieces = 0
    for example in examples:
        (look,) = run.look(example.source_text, " ".join(example.target))
        strongest = look.weights[0].argmax(dim=-1).tolist()  # (target,) and the end
        for place in range(len(example.target)):
            linked = {i for i, j in example.links if j == place}
            linked_pieces += bool(linked)
            right += strongest[place] in linked
    return right / max(linked_pieces, 1)
