"""The four stages of the Neural Turing Machine's addressing, by hand and by loops."""

import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from regard.attention import Attention, Controls, Cosine, NTMAddressing
from regard.attention.addressing import circular_shift, sharpen

STAY = [0.0, 1.0, 0.0]
RIGHT = [0.0, 0.0, 1.0]
LEFT = [1.0, 0.0, 0.0]


def controls(previous, strength=1.0, gate=1.0, shift=STAY, sharpening=1.0):
    """Controls for one query over weights (query, key)."""
    rows = previous.shape[:-1]

    def number(x):
        return torch.full((*rows, 1), float(x), dtype=previous.dtype)

    moves = torch.tensor(shift, dtype=previous.dtype).expand(*rows, len(shift))
    return Controls(previous, number(strength), number(gate), moves, number(sharpening))


def one_hot(place, size=5):
    return torch.eye(size, dtype=torch.float64)[[place]]


def by_loops(scores, carried):
    """Equations 5 to 9 for one row, in plain Python."""
    previous, (strength,), (gate,), shift, (gamma,) = (x.tolist() for x in carried)
    n, reach = len(scores), len(shift) // 2
    exponentials = [math.exp(strength * s) for s in scores]
    content = [e / sum(exponentials) for e in exponentials]
    gated = [gate * c + (1 - gate) * p for c, p in zip(content, previous, strict=True)]
    shifted = [
        sum(gated[(i - move) % n] * shift[move + reach] for move in range(-reach, reach + 1))
        for i in range(n)
    ]
    powers = [w**gamma for w in shifted]
    return content, gated, shifted, [p / sum(powers) for p in powers]


@pytest.mark.parametrize("reach", [0, 1, 2])
def test_the_four_stages_are_those_of_the_paper(reach):
    scores = torch.randn(2, 3, 7, dtype=torch.float64)
    raw = torch.randn(2, 3, 3 + 2 * reach + 1, dtype=torch.float64)
    previous = torch.rand(2, 3, 7, dtype=torch.float64).softmax(dim=-1)
    carried = Controls.of(raw, previous)
    weights, stages = NTMAddressing()(scores, None, scores, carried)
    for b in range(2):
        for i in range(3):
            expected = by_loops(scores[b, i].tolist(), [x[b, i] for x in carried])
            for stage, loops in zip(stages, expected, strict=True):
                assert_close(stage[b, i], torch.tensor(loops, dtype=torch.float64))
    assert weights is stages.sharpened


def test_raw_controls_are_bent_into_their_ranges():
    raw, previous = 5 * torch.randn(11, 1, 6), torch.rand(11, 1, 7)
    carried = Controls.of(raw, previous)
    assert_close(carried.strength, raw[..., 0:1].exp().log1p())
    assert_close(carried.gate, 1 / (1 + (-raw[..., 1:2]).exp()))
    assert_close(carried.sharpening, 1 + raw[..., 2:3].exp().log1p())
    assert_close(carried.shift, raw[..., 3:].softmax(dim=-1))


def test_a_closed_gate_keeps_looking_where_it_looked():
    scores = torch.randn(1, 5, dtype=torch.float64)
    weights, _ = NTMAddressing()(scores, None, scores, controls(one_hot(2), gate=0.0))
    assert_close(weights, one_hot(2))


def test_an_open_gate_looks_by_content_alone():
    scores = torch.randn(1, 5, dtype=torch.float64)
    weights, _ = NTMAddressing()(scores, None, scores, controls(one_hot(2), strength=2.0))
    assert_close(weights, (2 * scores).softmax(dim=-1))


@pytest.mark.parametrize("shift, place, arrives", [(RIGHT, 2, 3), (LEFT, 2, 1), (RIGHT, 4, 0)])
def test_a_shift_moves_the_look_to_the_neighbour_and_round_the_end(shift, place, arrives):
    scores = torch.randn(1, 5, dtype=torch.float64)
    carried = controls(one_hot(place), gate=0.0, shift=shift)
    weights, _ = NTMAddressing()(scores, None, scores, carried)
    assert_close(weights, one_hot(arrives))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("autocast", [False, True], ids=["half", "autocast"])
def test_a_step_in_a_large_memory_is_one_place_in_half_precision_too(autocast, dtype):
    memory = torch.randn(1, 5_003, 16)
    previous = torch.zeros(1, 1, 5_003)
    previous[0, 0, 4_097] = 1.0
    carried = Controls.of(torch.tensor([[[0.0, -99.0, 0.0, -99.0, -99.0, 99.0]]]), previous)
    if not autocast:
        memory, carried = memory.to(dtype), Controls(*(part.to(dtype) for part in carried))
    attention = Attention(Cosine(), NTMAddressing()).to(memory.dtype)
    with torch.autocast("cpu", dtype, enabled=autocast):
        read = attention(memory[:, :1], memory, memory, carried=carried)
    assert read.weights[0, 0].nonzero().flatten().tolist() == [4_098]
    assert_close(read.context.float(), memory[:, 4_098:4_099].to(dtype).float())


def test_a_blurred_shift_spreads_the_look():
    spread = circular_shift(one_hot(2), torch.tensor([[0.1, 0.7, 0.2]], dtype=torch.float64))
    assert_close(spread, torch.tensor([[0.0, 0.1, 0.7, 0.2, 0.0]], dtype=torch.float64))


def test_sharpening_by_two_squares():
    weights = torch.tensor([[0.5, 0.25, 0.25]])
    expected = torch.tensor([[4 / 6, 1 / 6, 1 / 6]])
    assert_close(sharpen(weights, torch.tensor([[2.0]])), expected)


@pytest.mark.parametrize("size", [2, 128, 1024])
@pytest.mark.parametrize("exponent", [30.0, 100.0])
def test_much_sharpening_focuses_on_the_largest_however_small_it_is(size, exponent):
    weights = torch.full((1, size), 1.0)
    weights[0, 1] = 2.0
    focused = sharpen(weights / weights.sum(), torch.tensor([[exponent]]))
    assert_close(focused, torch.eye(size)[[1]], atol=1e-5, rtol=0)


def test_sharpening_an_even_look_leaves_it_even():
    even = torch.full((1, 128), 1 / 128)
    assert_close(sharpen(even, torch.tensor([[25.0]])), even)


def test_sharpening_nothing_gives_nothing():
    assert sharpen(torch.zeros(1, 3), torch.tensor([[2.0]])).tolist() == [[0.0, 0.0, 0.0]]


def test_gradients_are_finite_where_weights_are_exactly_zero():
    scores = torch.randn(1, 5, requires_grad=True)
    carried = controls(one_hot(2).float(), gate=0.0, shift=RIGHT, sharpening=1.7)
    carried = Controls(*(x.clone().requires_grad_() for x in carried))
    weights, _ = NTMAddressing()(scores, None, scores, carried)
    (weights * torch.randn(1, 5)).sum().backward()
    for tensor in (scores, *carried):
        assert tensor.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gradients_are_finite_at_zero_in_half_precision_too(dtype):
    weights = torch.tensor([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]], dtype=dtype, requires_grad=True)
    exponent = torch.full((2, 1), 1.7, dtype=dtype, requires_grad=True)
    sharpened = sharpen(weights, exponent)
    assert sharpened.tolist() == [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    (sharpened * torch.randn(2, 3, dtype=dtype)).sum().backward()
    assert weights.grad.isfinite().all()
    assert exponent.grad.isfinite().all()


def test_the_addressing_has_the_gradient_of_its_formula():
    scores = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    previous = torch.rand(2, 3, 5, dtype=torch.float64).softmax(dim=-1).requires_grad_()
    raw = torch.randn(2, 3, 6, dtype=torch.float64, requires_grad=True)

    def address(scores, previous, raw):
        return NTMAddressing()(scores, None, scores, Controls.of(raw, previous))[0]

    assert gradcheck(address, (scores, previous, raw))


def test_hidden_places_get_nothing_even_by_shifting():
    scores = torch.randn(1, 5, dtype=torch.float64)
    mask = torch.tensor([[True, True, True, False, True]])
    carried = controls(one_hot(2), gate=0.0, shift=[0.0, 0.5, 0.5])
    weights, _ = NTMAddressing()(scores, mask, scores, carried)
    assert_close(weights, one_hot(2))


def test_addressing_reads_a_memory_through_the_core():
    memory = torch.eye(5, dtype=torch.float64).unsqueeze(0)  # (batch, place, size)
    query = memory[:, 3:4]
    carried = controls(torch.zeros(1, 1, 5, dtype=torch.float64), strength=50.0, shift=RIGHT)
    read = Attention(Cosine(), NTMAddressing())(query, memory, memory, carried=carried)
    assert_close(read.context, memory[:, 4:5], atol=1e-6, rtol=0)
    assert_close(read.carried.content, memory[:, 3:4], atol=1e-6, rtol=0)
    assert torch.equal(read.weights, read.carried.sharpened)


def test_addressing_without_controls_says_what_is_missing():
    with pytest.raises(ValueError, match="NTMAddressing needs Controls as carried, got NoneType"):
        NTMAddressing()(torch.randn(1, 5), None, None)


@pytest.mark.parametrize("size", [3, 5])
def test_raw_controls_hold_an_odd_number_of_shifts(size):
    with pytest.raises(ValueError, match=rf"raw controls \(2, {size}\) must end in 3 \+ an odd"):
        Controls.of(torch.randn(2, size), torch.rand(2, 7))


def test_controls_must_fit_the_memory():
    scores = torch.randn(1, 5)
    with pytest.raises(ValueError, match=r"previous.*\(1, 7\)"):
        NTMAddressing()(scores, None, scores, controls(torch.rand(1, 7)))
    with pytest.raises(ValueError, match=r"shift.*\(1, 2\)"):
        NTMAddressing()(scores, None, scores, controls(torch.rand(1, 5), shift=[0.5, 0.5]))
