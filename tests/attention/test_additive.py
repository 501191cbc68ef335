"""v · tanh(q + k), tile by tile, against the formula written out."""

import pytest
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from regard.attention import Additive, additive
from regard.attention.additive import additive_scores


def written_out(queries, keys, direction):
    """score[…, i, j] = v · tanh(qᵢ + kⱼ), with every (query, key, hidden) number held."""
    return torch.tanh(queries.unsqueeze(-2) + keys.unsqueeze(-3)) @ direction


def leaf(*shape, dtype=torch.float64, spread=1.0):
    return (spread * torch.randn(*shape, dtype=dtype)).requires_grad_()


def gradients(scores, upstream, *inputs):
    return torch.autograd.grad(scores, inputs, upstream)


# A tile of one number, tiles that cut keys, queries or the batch unevenly, one tile for all.
@pytest.mark.parametrize(
    "tile, spread",
    [(5, 1.0), (60, 1.0), (400, 1.0), (1 << 19, 1.0), (1, 1e3), (17, 1e3), (150, 1e3)],
    ids=str,
)
def test_tiles_of_any_size_give_the_written_out_scores_and_gradients(tile, spread, monkeypatch):
    monkeypatch.setattr(additive, "TILE_NUMEL", tile)
    queries, keys, direction = leaf(3, 7, 5, spread=spread), leaf(3, 11, 5, spread=spread), leaf(5)
    scores = additive_scores(queries, keys, direction)
    expected = written_out(queries, keys, direction)
    assert_close(scores, expected)
    upstream = torch.randn_like(scores)
    ours = gradients(scores, upstream, queries, keys, direction)
    theirs = gradients(expected, upstream, queries, keys, direction)
    for actual, correct in zip(ours, theirs, strict=True):
        assert_close(actual, correct)


@pytest.mark.parametrize("tile", [13, 1 << 19])
def test_the_gradient_is_that_of_finite_differences(tile, monkeypatch):
    monkeypatch.setattr(additive, "TILE_NUMEL", tile)
    assert gradcheck(additive_scores, (leaf(2, 3, 5), leaf(2, 7, 5), leaf(5)))


@pytest.mark.parametrize("tile", [1, 7, 60, 150])
def test_no_tile_holds_more_numbers_than_it_may(tile, monkeypatch):
    monkeypatch.setattr(additive, "TILE_NUMEL", tile)
    queries, keys = torch.empty(3, 7, 5), torch.empty(3, 11, 5)
    covered = torch.zeros(3, 7, 11)
    for index in additive._tiles(queries, keys):
        covered[index] += 1
        assert 5 * covered[index].numel() <= max(tile, 5)
    assert (covered == 1).all()


def test_autocast_rounds_the_vectors_and_not_the_sums():
    queries, keys, direction = torch.randn(2, 5, 64), torch.randn(2, 7, 64), torch.ones(64)
    alone = additive_scores(queries, keys, direction)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(additive_scores(queries, keys, direction), alone)


def test_leading_axes_may_be_any():
    for leading in [(), (2,), (2, 3), (2, 3, 2)]:
        queries, keys, direction = leaf(*leading, 5, 7), leaf(*leading, 11, 7), leaf(7)
        scores = additive_scores(queries, keys, direction)
        assert_close(scores, written_out(queries, keys, direction))


def test_heads_cut_from_one_vector_need_not_lie_in_a_row():
    queries = leaf(2, 5, 3 * 7).unflatten(-1, (3, 7)).transpose(1, 2)  # (batch, head, query, size)
    keys = leaf(2, 11, 3 * 7).unflatten(-1, (3, 7)).transpose(1, 2)
    direction = leaf(7)
    scores = additive_scores(queries, keys, direction)
    assert_close(scores, written_out(queries, keys, direction))


@pytest.mark.parametrize("spread", [0.01, 10.0, 39.9, 45.0, 100.0, 1e4])
def test_huge_numbers_of_both_signs_agree_with_tanh(spread):
    size = 13
    signs = torch.randn(2, 7, size).sign()
    queries = spread * signs
    keys = -spread * signs[:, :5] + torch.randn(2, 5, size)  # some sums cancel, others grow
    queries, keys = queries.requires_grad_(), keys.requires_grad_()
    direction = leaf(size, dtype=torch.float32)
    scores = additive_scores(queries, keys, direction)
    exact = [x.detach().double().requires_grad_() for x in (queries, keys, direction)]
    expected = written_out(*exact)
    assert_close(scores.double(), expected, atol=1e-5, rtol=1e-5)
    upstream = torch.randn_like(scores)
    ours = gradients(scores, upstream, queries, keys, direction)
    theirs = gradients(expected, upstream.double(), *exact)
    for actual, correct in zip(ours, theirs, strict=True):
        assert_close(actual.double(), correct, atol=2e-5, rtol=1e-5)


def test_a_saturated_pair_scores_the_sum_of_the_direction_and_has_no_slope():
    queries = torch.tensor([[[100.0, 100.0]]], requires_grad=True)
    keys = torch.tensor([[[100.0, -300.0]]], requires_grad=True)
    scores = additive_scores(queries, keys, torch.tensor([2.0, 5.0]))
    assert scores.tolist() == [[[2.0 - 5.0]]]
    scores.sum().backward()
    assert queries.grad.tolist() == keys.grad.tolist() == [[[0.0, 0.0]]]


@pytest.mark.parametrize("batch, rows, columns, size", [(2, 0, 3, 5), (2, 3, 0, 5), (0, 3, 7, 5)])
def test_empty_axes_give_empty_scores_and_zero_gradients(batch, rows, columns, size):
    queries, keys, direction = leaf(batch, rows, size), leaf(batch, columns, size), leaf(size)
    scores = additive_scores(queries, keys, direction)
    assert scores.shape == (batch, rows, columns)
    scores.sum().backward()
    for tensor in (queries, keys, direction):
        assert (tensor.grad == 0).all()


@pytest.mark.parametrize("frozen", [0, 1, 2])
def test_what_needs_no_gradient_gets_none(frozen):
    tensors = [leaf(2, 3, 5), leaf(2, 7, 5), leaf(5)]
    tensors[frozen].requires_grad_(False)
    additive_scores(*tensors).sum().backward()
    assert [t.grad is None for t in tensors] == [i == frozen for i in range(3)]


@pytest.mark.parametrize("dtype, near", [(torch.float16, 5e-3), (torch.bfloat16, 4e-2)])
def test_half_precision_agrees_as_far_as_its_digits_go(dtype, near):
    queries, keys, direction = (
        leaf(*shape, dtype=dtype) for shape in [(2, 5, 7), (2, 11, 7), (7,)]
    )
    scores = additive_scores(queries, keys, direction)
    exact = [x.detach().double().requires_grad_() for x in (queries, keys, direction)]
    expected = written_out(*exact)
    assert scores.dtype == dtype
    assert_close(scores.double(), expected, atol=near, rtol=near)
    ours = gradients(scores.sum(), None, queries, keys, direction)
    theirs = gradients(expected.sum(), None, *exact)
    for actual, correct in zip(ours, theirs, strict=True):
        assert actual.dtype == dtype
        assert_close(actual.double(), correct, atol=5 * near, rtol=near)


def test_the_sum_over_many_pairs_keeps_its_digits():
    queries, keys, direction = (
        leaf(*shape, dtype=torch.float32) for shape in [(1, 307, 17), (1, 293, 17), (17,)]
    )
    scores = additive_scores(queries, keys, direction)
    exact = [x.detach().double().requires_grad_() for x in (queries, keys, direction)]
    upstream = torch.randn_like(scores)
    ours = gradients(scores, upstream, queries, keys, direction)
    theirs = gradients(written_out(*exact), upstream.double(), *exact)
    for actual, correct in zip(ours, theirs, strict=True):
        assert_close(actual.double(), correct, atol=1e-3, rtol=1e-4)


def test_the_score_learns_the_same_step_as_the_written_out_network():
    score = Additive(3, 5, 7, bias=True).double()
    queries, keys = torch.randn(2, 11, 3).double(), torch.randn(2, 13, 5).double()
    upstream = torch.randn(2, 11, 13).double()
    ours = gradients(score(queries, keys).scores(), upstream, *score.parameters())
    W, b, U, v = score.query.weight, score.query.bias, score.key.weight, score.direction
    expected = written_out(queries @ W.T + b, keys @ U.T, v)
    theirs = gradients(expected, upstream, *score.parameters())
    for actual, correct in zip(ours, theirs, strict=True):
        assert_close(actual, correct)
