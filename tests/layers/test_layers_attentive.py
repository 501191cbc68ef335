"""The attentive GRU whose backward pass is written out, against its steps one by one."""

import pytest
import torch
from torch.testing import assert_close

from regard import edit, watch
from regard.attention import Additive, Attention, Padding
from regard.layers import GRUCell, RecurrentState, watch_gates
from regard.layers.attentive import can_run_attentive, run_attentive

TARGET, SOURCE = torch.tensor([2, 5, 1, 5]), torch.tensor([3, 1, 7, 6])


class Decoder(torch.nn.Module):
    def __init__(self, embedding, hidden, memory, size):
        super().__init__()
        self.attention = Attention(Additive(hidden, memory, size))
        self.cell = GRUCell(embedding + memory, hidden)


def parts(embedding=3, hidden=11, memory=13, size=17):
    torch.manual_seed(1)
    decoder = Decoder(embedding, hidden, memory, size).double()
    shapes = (4, 5, embedding), (4, hidden), (4, 7, memory)
    inputs = [torch.randn(*shape, dtype=torch.double, requires_grad=True) for shape in shapes]
    return decoder, inputs


def at_once(decoder, words, start, memory, target=TARGET, source=SOURCE):
    keys = decoder.attention.prepare(memory)
    return run_attentive(
        decoder.attention, decoder.cell, words, target, start, memory, keys, source
    )


def step_by_step(decoder, words, start, memory, target=TARGET, source=SOURCE):
    keys, mask, hidden, steps = decoder.attention.prepare(memory), Padding(source), start, []
    for word in words.unbind(1):
        looked = decoder.attention(hidden.unsqueeze(1), keys, memory, mask).context.squeeze(1)
        hidden, _ = decoder.cell(torch.cat([word, looked], dim=-1), RecurrentState(hidden))
        steps.append((hidden, looked))
    real = (torch.arange(words.shape[1]) < target.unsqueeze(1)).unsqueeze(-1)
    return tuple(torch.stack(part, dim=1) * real for part in zip(*steps, strict=True))


def assert_alike(decoder, inputs, **lengths):
    learned = [*inputs, *decoder.parameters()]
    found, expected = (
        at_once(decoder, *inputs, **lengths),
        step_by_step(decoder, *inputs, **lengths),
    )
    slopes = [torch.randn_like(part) for part in expected]
    mine = torch.autograd.grad(found, learned, slopes)
    theirs = torch.autograd.grad(expected, learned, slopes)
    for one, other in zip((*found, *mine), (*expected, *theirs), strict=True):
        assert_close(one, other)


@pytest.mark.parametrize("sizes", [(3, 11, 13, 17), (2, 1, 1, 1), (1, 19, 2, 5)])
def test_outputs_and_gradients_are_those_of_the_steps(sizes):
    assert_alike(*parts(*sizes))


def test_sentences_of_equal_length_have_no_padding():
    assert_alike(*parts(), target=torch.full((4,), 5), source=torch.full((4,), 7))


@pytest.mark.parametrize("scale", [1e2, 1e4])
def test_queries_too_large_for_an_exponential_are_compared_the_long_way(scale):
    decoder, inputs = parts()
    with torch.no_grad():
        decoder.attention.score.query.weight.mul_(scale)
    assert_alike(decoder, inputs)


def test_keys_too_large_for_an_exponential_are_too():
    decoder, (words, start, memory) = parts()
    assert_alike(decoder, [words, start, (memory.detach() * 1e4).requires_grad_()])


def test_large_sizes_agree_in_single_precision():
    torch.manual_seed(2)
    decoder = Decoder(64, 96, 192, 96)
    target, source = torch.randint(3, 12, (40,)), torch.randint(3, 14, (40,))
    target[0], source[1] = 11, 13
    inputs = [torch.randn(*s).mul_(0.5) for s in ((40, 11, 64), (40, 96), (40, 13, 192))]
    learned = [*(each.requires_grad_() for each in inputs), *decoder.parameters()]
    found = at_once(decoder, *inputs, target, source)
    expected = step_by_step(decoder, *inputs, target, source)
    slopes = [torch.randn_like(part) / 100 for part in expected]
    mine = torch.autograd.grad(found, learned, slopes)
    theirs = torch.autograd.grad(expected, learned, slopes)
    for one, other in zip((*found, *mine), (*expected, *theirs), strict=True):
        assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_whoever_watches_edits_or_evaluates_gets_the_steps():
    decoder, _ = parts()
    ask = lambda: can_run_attentive(decoder.attention, decoder.cell, SOURCE)  # noqa: E731
    assert ask()
    with watch(decoder):
        assert not ask()
    with edit(decoder, {"attention": lambda weights, mask, call: weights}):
        assert not ask()
    with watch_gates(decoder):
        assert not ask()
    with torch.no_grad():
        assert not ask()
    with torch.autocast("cpu", torch.bfloat16):
        assert not ask()
    assert not can_run_attentive(decoder.attention, decoder.cell, torch.tensor([3, 0]))
    decoder.attention.dropout = 0.1
    assert not ask()
    half, _ = parts()
    half.bfloat16()
    assert not can_run_attentive(half.attention, half.cell, SOURCE)


def test_a_second_derivative_is_refused():
    decoder, inputs = parts()
    states, _ = at_once(decoder, *inputs)
    with pytest.raises(RuntimeError, match="no second derivative: create_graph must be False"):
        torch.autograd.grad(states.sum(), inputs[0], create_graph=True)
