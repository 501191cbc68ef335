"""The method a recipe names, at once or as a stream."""

import pytest
import torch

from regard.decoding import DecodingConfig, beam, decode, greedy, sample, stream

METHODS = {"greedy": greedy, "sample": sample, "beam": beam}


@pytest.mark.parametrize("method", METHODS)
def test_decode_does_what_the_method_says(method, table, toys):
    model, config = table(5, scale=0.5), DecodingConfig(method=method, longest=7)
    call = (model, toys.sources([0], [0]), torch.tensor([0, 1]), config)
    assert decode(*call, end=1, never=(2,)) == METHODS[method](*call, end=1, never=(2,))


def test_decode_hands_the_numbers_of_the_rows_on(table, toys):
    model, config = table(5, scale=0.5), DecodingConfig(method="sample", longest=7)
    call = (model, toys.sources([0], [0]), torch.tensor([0, 0]), config)
    assert decode(*call, numbers=[4, 9]) == sample(*call, numbers=[4, 9]) != sample(*call)


@pytest.mark.parametrize("method", ["greedy", "sample"])
@pytest.mark.parametrize("longest", [1, 70])
def test_a_stream_says_what_decode_says(method, longest, table, toys):
    model = table(5, scale=0.5)
    config = DecodingConfig(method=method, longest=longest, shortest=longest // 2)
    call = (model, toys.sources([0]), torch.tensor([0]), config)
    [[whole]] = decode(*call, end=1)
    assert tuple(stream(*call, end=1)) == whole.ids


def test_a_stream_of_a_numbered_row_draws_that_rows_words(table, toys):
    model, config = table(5, scale=0.5), DecodingConfig(method="sample", longest=7)
    rows = decode(model, toys.sources([0], [0], [0]), torch.zeros(3, dtype=torch.long), config)
    words = stream(model, toys.sources([0]), torch.tensor([0]), config, number=2)
    assert tuple(words) == rows[2][0].ids


def test_a_stream_gives_each_word_before_the_next_is_thought_of(table, toys):
    model = table(5)
    words = stream(model, toys.sources([0]), torch.tensor([0]), DecodingConfig(longest=7))
    next(words)
    assert len(model.rows) == 1
    assert torch.is_grad_enabled()
    next(words)
    assert len(model.rows) == 2


def test_a_stream_that_can_say_nothing_is_empty(toys):
    model = toys.Table(torch.full((1, 1, 3, 3), -torch.inf))
    assert list(stream(model, toys.sources([0]), torch.tensor([0]), DecodingConfig())) == []


def test_a_beam_cannot_be_streamed(table, toys):
    with pytest.raises(ValueError, match=r"method \(beam\) cannot be streamed.*greedy or sample"):
        stream(table(3), toys.sources([0]), torch.tensor([0]), DecodingConfig(method="beam"))


def test_a_stream_is_one_answer(table, toys):
    with pytest.raises(ValueError, match=r"first \(2 rows\) must be one row"):
        stream(table(3), toys.sources([0], [0]), torch.tensor([0, 0]), DecodingConfig())
