"""What a model would be, before its numbers are there."""

import threading

import pytest
import torch
from torch import nn

from regard.models.catalog import build
from regard.models.outline import (
    build_unfilled,
    count_parameter_bytes,
    count_table_bytes,
    limit_parameters,
    outline,
)

GPT = {"vocabulary_size": 11, "model_size": 12, "heads": 3, "layers": 2, "longest": 19}
MODELS = {
    "window": ("window", {"vocabulary_size": 11, "direct": True}),
    "rnn": ("rnn", {"vocabulary_size": 11, "tied": True}),
    "attentive": ("attentive-rnn", {"vocabulary_size": 11, "split": "key-value"}),
    "gpt": ("gpt2", GPT),
    "sinusoidal": ("gpt2", {**GPT, "positions": "sinusoidal"}),
    "rotary, without biases": ("gpt2", {**GPT, "positions": "rotary", "bias": False}),
    "transformer": ("transformer", {**GPT, "tied": False}),
    "bahdanau": ("bahdanau", {"vocabulary_size": 11, "hidden_size": 13}),
}


@pytest.fixture(params=MODELS)
def make(request):
    name, settings = MODELS[request.param]
    return lambda: build(name, **settings)


def described(model):
    return {name: (weight.shape, weight.dtype) for name, weight in model.state_dict().items()}


def test_an_outline_has_the_names_and_shapes_of_the_model_and_no_numbers(make):
    model, sketch = make(), outline(make)
    assert described(sketch) == described(model)
    assert {tensor.device.type for tensor in sketch.state_dict().values()} == {"meta"}
    assert count_parameter_bytes(sketch) == 4 * sum(weight.numel() for weight in model.parameters())
    assert count_table_bytes(sketch) == 4 * sum(table.numel() for table in model.buffers())


def test_an_outline_and_an_unfilled_model_leave_the_generator_alone(make):
    before = torch.get_rng_state()
    outline(make)
    build_unfilled(make)
    assert torch.equal(torch.get_rng_state(), before)


def test_an_unfilled_model_has_the_tables_that_are_in_no_file(make):
    model, empty = make(), build_unfilled(make)
    assert described(empty) == described(model)
    assert {tensor.device.type for tensor in empty.state_dict().values()} == {"cpu"}
    tables = dict(model.named_buffers())
    assert tables.keys() == dict(empty.named_buffers()).keys()
    for name, table in empty.named_buffers():
        assert torch.equal(table, tables[name])


def test_what_is_drawn_in_another_way_leaves_the_generator_alone_too():
    before = torch.get_rng_state()
    made = build_unfilled(lambda: nn.Parameter(torch.bernoulli(torch.full((7,), 0.5))))
    assert made.shape == (7,)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("name", "layers"), [("gpt2", 10**9), ("rnn", 2**62)])
def test_a_billion_layers_are_not_waited_for(name, layers):
    with pytest.raises(ValueError, match="the model has more than 50 parameters"):
        outline(lambda: build(name, vocabulary_size=11, layers=layers), max_parameters=50)


@pytest.mark.parametrize("size", [12 * 10**12, 12 * 2**58])
def test_sizes_that_no_tensor_has_are_refused_in_one_line(size):
    with pytest.raises(ValueError, match=r"no model has sizes like these: .+") as told:
        outline(lambda: build("gpt2", vocabulary_size=11, model_size=size))
    assert "\n" not in str(told.value)


def test_a_table_larger_than_any_memory_is_only_outlined():
    settings = {**GPT, "positions": "sinusoidal", "longest": 10**12}
    assert count_table_bytes(outline(lambda: build("gpt2", **settings))) == 48 * 10**12


def test_another_thread_may_build_what_it_likes():
    made = []
    with limit_parameters(1):
        other = threading.Thread(target=lambda: made.append(nn.Linear(3, 5)))
        other.start()
        other.join()
        with pytest.raises(ValueError, match="more than 1 parameters"):
            nn.Linear(3, 5)
    assert len(made) == 1
    nn.Linear(3, 5)
