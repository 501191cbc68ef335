"""The Neural Turing Machine against its formulas, written out."""

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from regard import watch
from regard.attention import Stages
from regard.data.batches import Bits
from regard.models import build
from regard.models.ntm import NTMConfig, WriteHeads

SIZES = {"inputs": 5, "outputs": 3, "controller_size": 11, "slots": 7, "slot_size": 4}


def batch(rows=2, steps=6):
    inputs = torch.randint(2, (rows, steps, 5), generator=torch.Generator().manual_seed(3)).float()
    return Bits(inputs, inputs[..., :3], torch.ones(rows, steps, dtype=torch.bool))


def test_memory_is_erased_before_anything_is_added():
    torch.manual_seed(1)
    heads = WriteHeads(NTMConfig(**SIZES, write_heads=2))
    memory, before = torch.randn(1, 7, 4), torch.rand(1, 2, 7).softmax(dim=-1)
    signals = torch.randn(1, 11)
    after, weights, added = heads(signals, memory, before)
    # One cell at a time: M(i, j) · Π_h (1 − w_h(i) e_h(j)) + Σ_h w_h(i) a_h(j)
    said = heads.control(signals).view(2, -1)
    erase, add = said[:, 10:14].sigmoid(), said[:, 14:18].tanh()
    expected = memory[0].clone()
    for i in range(7):
        for j in range(4):
            for h in range(2):
                expected[i, j] *= 1 - weights[0, h, i] * erase[h, j]
            for h in range(2):
                expected[i, j] += weights[0, h, i] * add[h, j]
    assert_close(after[0], expected)
    assert_close(added[0], add)
    assert not torch.allclose(weights[0, 0], weights[0, 1])


def test_addressing_goes_by_content_then_gate_then_shift_then_sharpening():
    torch.manual_seed(2)
    model = build("ntm", **SIZES)
    memory, before = torch.randn(1, 7, 4), torch.rand(1, 1, 7).softmax(dim=-1)
    signals = torch.randn(1, 11)
    reads, weights = model.read(signals, memory, before)
    said = model.read.control(signals)[0]
    key, raw = said[:4].tanh(), said[4:]
    strength, gate, sharpening = F.softplus(raw[0]), raw[1].sigmoid(), 1 + F.softplus(raw[2])
    shift = raw[3:].softmax(dim=-1)
    content = (strength * F.cosine_similarity(key, memory[0], dim=-1)).softmax(dim=-1)
    gated = (gate * content + (1 - gate) * before[0, 0]).detach()
    shifted = sum(
        torch.tensor([gated[(i - step) % 7] for i in range(7)]) * shift[step + 1]
        for step in (-1, 0, 1)
    )
    expected = shifted**sharpening / (shifted**sharpening).sum()
    assert_close(weights[0, 0], expected)
    assert_close(reads[0, 0], expected @ memory[0])


@pytest.mark.parametrize("controller", ["lstm", "feedforward"])
def test_each_step_reads_what_was_written_in_it_and_hands_it_on(controller):
    torch.manual_seed(3)
    model = build("ntm", **SIZES, controller=controller, read_heads=2, write_heads=2)
    given = batch()
    state, steps = model.start(given), []
    for inputs in given.inputs.unbind(dim=1):
        logits, state = model.step(inputs, state)
        assert_close(state.reads, state.read_weights @ state.memory)
        steps.append(logits)
    assert_close(torch.stack(steps, dim=1), model(given))
    assert (state.controller is None) == (controller == "feedforward")
    picked = state.pick(torch.tensor([1, 1]))
    logits, _ = model.step(given.inputs[:, 0], picked)
    assert logits.shape == (2, 3)


def test_heads_start_at_the_first_place_of_an_even_memory():
    model = build("ntm", **SIZES)
    state = model.start(batch())
    assert state.read_weights[:, :, 0].eq(1).all() and state.write_weights.sum() == 2
    assert state.memory.unique().numel() == 1


def test_what_leaves_the_controller_is_clipped():
    model = build("ntm", **SIZES, clip=0.05)
    with torch.no_grad():
        model.controller.cell.bias_ih.fill_(50.0)
    signals, _ = model.controller(torch.zeros(1, 5 + 4), model.controller.start(1))
    assert signals.abs().max() <= 0.05


def test_gradients_reach_every_parameter_and_are_finite():
    model = build("ntm", **SIZES)
    F.binary_cross_entropy_with_logits(model(batch()), batch().targets).backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None and weight.grad.isfinite().all(), name
        assert weight.grad.abs().sum() > 0, name


def test_the_four_stages_of_each_addressing_are_recorded():
    model = build("ntm", **SIZES)
    with watch(model) as seen:
        model(batch(rows=1, steps=6))
    assert {path: len(calls) for path, calls in seen.items()} == {
        "write.attention": 6,
        "read.attention": 6,
    }
    stages = seen["read.attention"][0].carried
    assert isinstance(stages, Stages)
    assert stages.sharpened.shape == (1, 1, 7)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"controller": "gru"}, r"controller \('gru'\) must be one of lstm, feedforward"),
        ({"reach": 4}, r"reach \(4\) must be below half of slots \(7\)"),
        ({"clip": 0.0}, r"clip \(0.0\) must be above 0"),
        ({"read_heads": 0}, r"read_heads \(0\) must be at least 1"),
    ],
)
def test_a_config_refuses_what_cannot_work(settings, message):
    with pytest.raises(ValueError, match=message):
        NTMConfig(**SIZES, **settings)
