"""Weights that an objective needs in training: there with their gradient, computed once."""

import math

import pytest
import torch
from torch.testing import assert_close

from regard.attention import Additive, Attention, ScaledDot, Sparsemax, watch, weighings
from regard.attention import attention as core

STEPS, KEYS, SIZE = 4, 7, 5


def decode(attention, query, memory):
    """Each query is what the last one read, as in a decoder."""
    calls = []
    for _ in range(STEPS):
        calls.append(attention(query, memory, memory))
        query = calls[-1].context
    return calls


def doubly_stochastic(weights):
    """Σⱼ (1 − Σₜ αₜⱼ)², Xu et al. (2015), equation 14, over weights (batch, step, key)."""
    return (1 - weights.sum(dim=1)).square().sum()


def written_out(score, query, memory):
    """The same penalty, every step by its formula."""
    steps = []
    for _ in range(STEPS):
        if isinstance(score, Additive):
            scores = torch.tanh(score.query(query) + score.key(memory)) @ score.direction
        else:
            scores = (query @ memory.mT).squeeze(1) / math.sqrt(SIZE)
        steps.append(scores.softmax(dim=-1))
        query = steps[-1].unsqueeze(1) @ memory
    return doubly_stochastic(torch.stack(steps, dim=1))


@pytest.fixture
def softmaxes(monkeypatch):
    """One entry for each softmax over scores."""
    calls, compute = [], weighings.masked_softmax
    note = lambda *words: calls.append(1) or compute(*words)  # noqa: E731
    monkeypatch.setattr(weighings, "masked_softmax", note)
    return calls


@pytest.mark.parametrize("score", [lambda: Additive(SIZE, SIZE, 11), ScaledDot])
def test_an_objective_over_the_weights_needs_one_softmax_a_step(score, softmaxes):
    attention = Attention(score()).double()
    memory = torch.randn(3, KEYS, SIZE, dtype=torch.float64)
    first = torch.randn(3, 1, SIZE, dtype=torch.float64, requires_grad=True)
    with watch(attention, gradients=True) as seen:
        decode(attention, first, memory)
    weights = torch.cat([step.weights for step in seen["attention"]], dim=1)
    assert len(softmaxes) == STEPS
    leaves = [first, *attention.parameters()]
    ours = torch.autograd.grad(doubly_stochastic(weights), leaves)
    theirs = torch.autograd.grad(written_out(attention.score, first, memory), leaves)
    for actual, correct in zip(ours, theirs, strict=True):
        assert_close(actual, correct)


def test_weights_that_had_to_be_made_are_not_made_again(softmaxes):
    attention, memory = Attention(Additive(SIZE, SIZE, 11)), torch.randn(3, KEYS, SIZE)
    read = attention(torch.randn(3, 1, SIZE), memory, memory)
    assert read.weights is read.weights
    assert len(softmaxes) == 1
    assert_close(read.context, read.weights @ memory)


def test_many_weights_are_not_kept(monkeypatch):
    monkeypatch.setattr(core, "SCORES_PER_BLOCK", 3 * KEYS)
    attention, memory = Attention(Additive(SIZE, SIZE, 11)), torch.randn(3, KEYS, SIZE)
    assert attention(memory[:, :1], memory, memory).stored_weights is not None
    assert attention(memory[:, :2], memory, memory).stored_weights is None


def test_kept_weights_are_those_before_dropout():
    memory = torch.randn(3, KEYS, SIZE)
    for weigh in (Sparsemax(), None):
        read = Attention(ScaledDot(), weigh, dropout=0.5)(memory, memory, memory)
        assert_close(read.weights.sum(dim=-1), torch.ones(3, KEYS))
        assert not torch.allclose(read.context, read.weights @ memory)
