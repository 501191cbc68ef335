"""Answers longer than a model has positions."""

from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from regard.data.batches import Words
from regard.decoding import DecodingConfig, WindowedGenerator


class Count(NamedTuple):
    read: int

    def pick(self, rows: Tensor) -> "Count":
        return self


class Successor:
    """Says the next number, modulo 10, and refuses to read more than its positions."""

    def __init__(self, longest: int):
        self.config = SimpleNamespace(longest=longest)

    def start(self, batch: Words) -> Count:
        return Count(batch.inputs.shape[1])

    def step(self, ids: Tensor, state: Count) -> tuple[Tensor, Count]:
        assert state.read < self.config.longest, "read beyond the last position"
        logits = torch.full((len(ids), 10), -9.0)
        logits[torch.arange(len(ids)), (ids + 1) % 10] = 9.0
        return logits, Count(state.read + 1)


@pytest.mark.parametrize("prompt", [[3], [], [1, 2, 3], [*range(8)], [*range(10)] * 3])
def test_a_long_answer_goes_on_where_the_positions_run_out(prompt):
    config = DecodingConfig(longest=37, sliding=len(prompt) > 8)
    generator = WindowedGenerator(Successor(8), config, first=3)
    ((found,),) = generator.generate([prompt])
    last = prompt[-1] if prompt else 3
    assert list(found.ids) == [(last + 1 + i) % 10 for i in range(37)]
    assert list(generator.stream(prompt)) == list(found.ids)


def test_a_prompt_longer_than_the_positions_is_refused_unless_its_last_words_will_do():
    generator = WindowedGenerator(Successor(8), DecodingConfig(), first=3)
    said = "the prompt has 9 tokens, and the model has 8 positions; with sliding"
    for ask in (
        lambda: generator.generate([[1], [*range(9)]]),
        lambda: list(generator.stream([*range(9)])),
        lambda: generator.generate_watched([*range(9)]),
    ):
        with pytest.raises(ValueError, match=said):
            ask()


def test_a_prompt_that_fits_is_read_whole_though_the_answer_does_not():
    """Its beginning is forgotten only when the positions have run out."""

    class Remembering(Successor):
        def start(self, batch):
            seen.append(batch.inputs.shape[1])
            return super().start(batch)

    seen: list[int] = []
    generator = WindowedGenerator(Remembering(8), DecodingConfig(longest=9), first=3)
    ((found,),) = generator.generate([[1, 2, 3, 4, 5, 6]])
    assert found.ids == (7, 8, 9, 0, 1, 2, 3, 4, 5)
    assert seen[0] == 5  # and the sixth is fed at the first step


def test_it_stops_at_the_end():
    generator = WindowedGenerator(Successor(8), DecodingConfig(longest=37), first=3, end=2)
    ((found,),) = generator.generate([[4]])
    assert found.ids == (5, 6, 7, 8, 9, 0, 1, 2)
    assert found.ended


def test_a_beam_cannot_go_on_beyond_the_positions():
    generator = WindowedGenerator(Successor(8), DecodingConfig(method="beam", longest=37), first=3)
    with pytest.raises(ValueError, match="38 tokens go beyond the 8 positions"):
        generator.generate([[4]])
