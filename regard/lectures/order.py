"""Attention alone is blind to order: permute the words, and the outputs are permuted with them.

    attend(P X) = P attend(X)   for every permutation P

A word's query meets the same keys, wherever they stand. Add a position's vector to each word, and
the same word in another place is another vector.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.attention import Attended, Look, MultiHead, Sinusoidal, watch
from regard.lectures.catalog import TITLES
from regard.lectures.formatting import decimals, max_difference, to_list
from regard.lectures.lesson import SELF_ATTENTION, Lesson, step
from regard.lectures.seeding import fixed_seed

WORDS = ("dog", "bites", "man")
REVERSED = [2, 1, 0]
SIZE, HEADS, SEED = 8, 2, 1


class Reader(nn.Module):
    """Two heads of self-attention over three words, with positions or without."""

    def __init__(self, positions: nn.Module):
        super().__init__()
        self.positions = positions
        self.attention = MultiHead(SIZE, HEADS)

    def forward(self, words: Tensor) -> Tensor:
        return self.attention(self.positions(words))


def compare(positions: nn.Module) -> tuple[Tensor, Tensor, Attended, Attended]:
    """Outputs and attention for the sentence and for its reverse, outputs word by word alike."""
    with fixed_seed(SEED), torch.no_grad():
        words = torch.randn(1, len(WORDS), SIZE, dtype=torch.float64)
        reader = Reader(positions).double()
        with watch(reader) as seen:
            straight = reader(words)[0]
            reversed_ = reader(words[:, REVERSED])[0][
                REVERSED
            ]  # reversed twice: the order of WORDS
    first, second = seen["attention"]
    return straight, reversed_, first, second


def lesson() -> Lesson:
    blind, seeing = compare(nn.Identity()), compare(Sinusoidal(SIZE))
    sentences = (WORDS, tuple(WORDS[i] for i in REVERSED))
    return Lesson(
        name="order",
        title=TITLES["order"],
        source=SELF_ATTENTION,
        steps=(
            step(
                "Two heads of self-attention with random weights read the same three words in two "
                "orders. Nothing is trained; the claim holds for any weights.",
                *(" ".join(sentence) for sentence in sentences),
            ),
            step(
                "Without positions every word reads the same in both sentences: who bites whom "
                "cannot be told.",
                *_output_of_dog(*blind[:2]),
                f"largest difference of any output: {max_difference(*blind[:2]):.1e}",
            ),
            step(
                "With sinusoidal positions added to the words, dog as the first word and dog as "
                "the last are different vectors, and read different things.",
                *_output_of_dog(*seeing[:2]),
                f"largest difference of any output: {max_difference(*seeing[:2]):.2f}",
            ),
        ),
        numbers={
            "words": list(WORDS),
            "permutation": REVERSED,
            "without_positions": _numbers(*blind),
            "with_positions": _numbers(*seeing),
        },
        looks=tuple(
            Look.of(attended, path=f"{way}: {' '.join(words)}", queries=words, keys=words)
            for way, result in (("without positions", blind), ("with positions", seeing))
            for words, attended in zip(sentences, result[2:], strict=True)
        ),
    )


def _output_of_dog(straight: Tensor, reversed_: Tensor) -> tuple[str, str]:
    return (
        f"dog in “dog bites man” reads {decimals(straight[0, :4])} …",
        f"dog in “man bites dog” reads {decimals(reversed_[0, :4])} …",
    )


def _numbers(
    straight: Tensor, reversed_: Tensor, first: Attended, second: Attended
) -> dict[str, object]:
    return {
        "outputs": to_list(straight),
        "outputs_of_permuted": to_list(reversed_),  # word by word as in `words`
        "largest_difference": max_difference(straight, reversed_),
        "weights": to_list(first.weights[0]),
        "weights_of_permuted": to_list(second.weights[0]),
    }
