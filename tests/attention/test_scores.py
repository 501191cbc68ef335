"""Each score against its formula, pair by pair."""

import math

import pytest
import torch
from torch.testing import assert_close

from regard.attention import (
    Additive,
    Attention,
    Causal,
    Cosine,
    Dot,
    General,
    Location,
    MultiHead,
    ScaledDot,
    Score,
    watch,
)


def pairs(rule, queries, keys):
    """rule(q, k) → float, asked for every pair: (batch, query, key)."""
    return torch.stack(
        [
            torch.stack([torch.stack([rule(q, k) for k in b]) for q in a])
            for a, b in zip(queries, keys, strict=True)
        ]
    )


def vectors(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def test_a_dot_score_is_the_inner_product():
    queries, keys = torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[3.0, 4.0], [0.0, -1.0]]])
    assert Dot()(queries, keys).scores().tolist() == [[[11.0, -2.0]]]


def test_a_scaled_dot_score_is_divided_by_the_root_of_the_size():
    queries, keys = torch.ones(1, 1, 16), torch.ones(1, 1, 16)
    assert ScaledDot()(queries, keys).scores().item() == 16 / 4


def test_a_general_score_has_a_matrix_between_query_and_key():
    score = General(3, 5).double()
    queries, keys = vectors(2, 7, 3), vectors(2, 11, 5)
    W = score.matrix.weight.T  # (query size, key size)
    assert_close(score(queries, keys).scores(), pairs(lambda q, k: q @ W @ k, queries, keys))


def test_a_cosine_score_is_the_strength_times_the_cosine_of_the_angle():
    queries = torch.tensor([[[2.0, 0.0]]])
    keys = torch.tensor([[[5.0, 0.0], [0.0, 3.0], [-1.0, 0.0], [1.0, 1.0]]])
    expected = torch.tensor([[[3.0, 0.0, -3.0, 3 * math.sqrt(0.5)]]])
    assert_close(Cosine(strength=3.0)(queries, keys).scores(), expected)


PRECISIONS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
@pytest.mark.parametrize("length", [0.0, 1e-30], ids=["zero", "next to zero"])
def test_the_cosine_of_nothing_is_nothing_and_passes_no_gradient(length, dtype):
    if dtype == torch.float64:
        length = length**10  # which has digits enough for shorter vectors
    nothing = [length, 0.0, 0.0]
    queries = torch.tensor([[nothing, [0.0, 3.0, 4.0]]], dtype=dtype, requires_grad=True)
    keys = torch.tensor([[nothing, [0.0, 0.5, 0.0]]], dtype=dtype, requires_grad=True)
    scores = Cosine(2.0).to(dtype)(queries, keys).scores()
    expected = torch.tensor([[[0.0, 0.0], [0.0, 2 * 3 / 5]]], dtype=scores.dtype)
    assert_close(scores, expected, atol=2 * torch.finfo(dtype).eps, rtol=0)
    scores.sum().backward()
    assert (queries.grad[0, 0] == 0).all()
    assert (keys.grad[0, 0] == 0).all()
    # d cos(q, k) / dq = (k / ‖k‖ − cos · q / ‖q‖) / ‖q‖, here 2 · ((0, 1) − 0.6 · (0.6, 0.8)) / 5
    expected = torch.tensor([0.0, 2 * (1 - 0.36) / 5, 2 * -0.48 / 5], dtype=dtype)
    assert_close(queries.grad[0, 1], expected, atol=torch.finfo(dtype).eps, rtol=0)


@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
def test_a_zero_among_queries_and_keys_is_read_by_cosine_whole_and_step_by_step(dtype):
    queries = torch.tensor([[[1.0, 0.0], [0.0, 0.0]]], dtype=dtype)
    keys = torch.tensor([[[2.0, 0.0], [0.0, 0.0], [-3.0, 0.0]]], dtype=dtype)
    values = torch.eye(3, dtype=dtype).unsqueeze(0)
    odds = torch.tensor([math.e, 1.0, 1 / math.e], dtype=torch.float64)
    expected = torch.stack([odds / odds.sum(), torch.full((3,), 1 / 3, dtype=torch.float64)])
    attention = Attention(Cosine()).to(dtype)
    near = {"atol": 2 * torch.finfo(dtype).eps, "rtol": 0}
    for rows in (slice(0, 2), slice(0, 1), slice(1, 2)):
        for memory in (keys, attention.prepare(keys)):
            asking = queries[:, rows].clone().requires_grad_()
            read = attention(asking, memory, values)
            for result in (read.context, read.weights):  # from the fused kernel, and on demand
                assert_close(result[0].double(), expected[rows], **near)
                (gradient,) = torch.autograd.grad(result[..., 0].sum(), asking, retain_graph=True)
                assert gradient.abs().max() <= 1


def test_half_precision_overflows_in_no_length():
    keys = torch.full((1, 1, 64), 6e4, dtype=torch.float16)  # whose length is 480,000
    assert Cosine().half()(keys, keys).scores().item() == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize("bias", [False, True])
def test_an_additive_score_is_a_small_network_over_each_pair(bias):
    score = Additive(3, 5, 7, bias=bias).double()
    queries, keys = vectors(2, 11, 3), vectors(2, 13, 5)
    W, U, v = score.query.weight, score.key.weight, score.direction
    b = score.query.bias if bias else 0.0
    expected = pairs(lambda q, k: v @ torch.tanh(W @ q + U @ k + b), queries, keys)
    assert_close(score(queries, keys).scores(), expected)


def test_luongs_concat_is_one_matrix_over_the_query_and_key_laid_end_to_end():
    W, v = torch.randn(7, 3 + 5), torch.randn(7)
    score = Additive.concat(W, v, query_size=3)
    queries, keys = torch.randn(1, 2, 3), torch.randn(1, 2, 5)
    expected = pairs(lambda q, k: v @ torch.tanh(W @ torch.cat([q, k])), queries, keys)
    assert_close(score(queries, keys).scores(), expected, atol=1e-5, rtol=1e-5)


def test_a_location_score_is_the_querys_own_opinion_of_each_place():
    score = Location(3, longest=11).double()
    queries, keys = vectors(2, 5, 3), vectors(2, 7, 13)
    scores = score(queries, keys).scores()
    assert_close(scores, (queries @ score.places.weight.T)[..., :7])
    assert_close(scores, score(queries, vectors(2, 7, 13)).scores())


SCORES = {
    "dot": lambda: Dot(),
    "scaled": lambda: ScaledDot(),
    "general": lambda: General(5, 5),
    "cosine": lambda: Cosine(2.0),
    "additive": lambda: Additive(5, 5, 7),
    "location": lambda: Location(5, 13),
}


@pytest.mark.parametrize("name", SCORES)
def test_keys_prepared_once_score_as_keys_prepared_each_time(name):
    attention = Attention(SCORES[name]())
    queries, keys, values = torch.randn(2, 3, 5), torch.randn(2, 11, 5), torch.randn(2, 11, 7)
    prepared = attention.prepare(keys)
    for query in queries.split(1, dim=1):
        fresh = attention(query, keys, values)
        again = attention(query, prepared, values)
        assert torch.equal(again.context, fresh.context)
        assert torch.equal(again.weights, fresh.weights)


@pytest.mark.parametrize("name", ["general", "cosine", "additive", "location"])
def test_every_parameter_of_a_score_learns(name):
    attention = Attention(SCORES[name]())
    queries, keys, values = torch.randn(2, 3, 5), torch.randn(2, 11, 5), torch.randn(2, 11, 7)
    attention(queries, keys, values).context.square().sum().backward()
    for parameter in attention.parameters():
        assert parameter.grad.abs().sum() > 0


@pytest.mark.parametrize("name", SCORES)
def test_scores_do_not_care_how_many_axes_lead(name):
    score = SCORES[name]().double()
    queries, keys = vectors(2, 3, 5, 7, 5), vectors(2, 3, 5, 11, 5)
    many = score(queries, keys).scores()
    one = score(queries[1, 2, 3], keys[1, 2, 3]).scores()
    assert many.shape == (2, 3, 5, 7, 11)
    assert_close(many[1, 2, 3], one)


def test_a_score_of_ones_own_works_with_heads_masks_and_watching_the_same_day():
    class Negated(Score):
        """score(q, k) = −(q · k)"""

        def transform_queries(self, queries):
            return -queries

    model = MultiHead(10, 2, score=Negated())
    x = torch.randn(2, 7, 10)
    with watch(model) as seen:
        model(x, mask=Causal())
    (read,) = seen["attention"]
    q, k, _ = (x @ model.projection.weight.T).chunk(3, dim=-1)
    q, k = (t.unflatten(-1, (2, 5)).transpose(1, 2) for t in (q, k))
    future = torch.ones(7, 7, dtype=torch.bool).triu(1)
    expected = (-q @ k.mT).masked_fill(future, -math.inf).softmax(dim=-1)
    assert_close(read.weights, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("score", [Dot(), ScaledDot(), Cosine()], ids=lambda s: type(s).__name__)
def test_an_inner_product_needs_one_size(score):
    message = r"needs queries and keys of one size, got queries \(2, 3, 5\) and keys \(2, 3, 7\)"
    with pytest.raises(ValueError, match=type(score).__name__ + " " + message):
        score(torch.randn(2, 3, 5), torch.randn(2, 3, 7))


def test_a_score_says_which_size_it_was_built_for():
    queries, keys = torch.randn(2, 3, 5), torch.randn(2, 3, 7)
    with pytest.raises(ValueError, match=r"queries \(2, 3, 5\) must end in the size 11"):
        General(11, 7)(queries, keys)
    with pytest.raises(ValueError, match=r"General needs queries and keys of one size"):
        General(5, 11)(queries, keys)
    with pytest.raises(ValueError, match=r"queries \(2, 3, 5\) must end in the size 11"):
        Additive(11, 7, 13)(queries, keys)
    with pytest.raises(ValueError, match=r"keys \(2, 3, 7\) must end in the size 11"):
        Additive(5, 11, 13)(queries, keys)
    with pytest.raises(ValueError, match=r"queries \(2, 3, 5\) must end in the size 11"):
        Location(11, 13)(queries, keys)


def test_a_location_knows_so_many_places_and_no_more():
    with pytest.raises(ValueError, match=r"Location knows 3 positions \(longest\).* 7 keys"):
        Location(5, longest=3)(torch.randn(2, 3, 5), torch.randn(2, 7, 5))


def test_an_additive_score_needs_something_hidden():
    with pytest.raises(ValueError, match=r"hidden_size \(0\) must be 1 or more"):
        Additive(3, 5, 0)
