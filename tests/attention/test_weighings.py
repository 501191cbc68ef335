"""Each way from scores to weights, against its formula."""

import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.distributions import Categorical
from torch.testing import assert_close

from regard.attention import (
    Attention,
    Dot,
    Given,
    Hard,
    LocalMonotonic,
    LocalPredictive,
    Proportional,
    Softmax,
    Sparsemax,
)

ROW = torch.tensor([[0.0, 0.0, 1.0, 0.0]])


def weigh(weighing, scores, mask=None, queries=None, carried=None):
    return weighing(scores, mask, queries, carried)[0]


def vectors(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def test_base_three_is_the_softmax_a_lecture_does_in_its_head():
    assert_close(weigh(Softmax(base=3), ROW), torch.tensor([[1 / 6, 1 / 6, 1 / 2, 1 / 6]]))


def test_base_e_is_everybodys_softmax():
    expected = torch.tensor([[0.1749, 0.1749, 0.4754, 0.1749]])
    assert_close(weigh(Softmax(), ROW), expected, atol=1e-4, rtol=0)


def test_a_temperature_divides_the_scores():
    scores = vectors(3, 7)
    assert_close(weigh(Softmax(temperature=0.5), scores), (scores / 0.5).softmax(dim=-1))
    both = weigh(Softmax(temperature=2.0, base=2.0), scores)
    powers = 2.0 ** (scores / 2.0)
    assert_close(both, powers / powers.sum(dim=-1, keepdim=True))


def test_heat_makes_everything_even_and_cold_picks_the_best():
    assert_close(weigh(Softmax(temperature=1e6), ROW), torch.full((1, 4), 0.25), atol=1e-5, rtol=0)
    assert_close(weigh(Softmax(temperature=1e-2), ROW), ROW)


def test_hidden_scores_weigh_nothing_and_the_rest_share():
    mask = torch.tensor([[True, False, True, False]])
    expected = torch.tensor([[1.0, 0.0, math.e, 0.0]]) / (1 + math.e)
    assert_close(weigh(Softmax(), ROW, mask), expected)


def test_softmax_refuses_what_is_not_a_temperature_or_a_base():
    with pytest.raises(ValueError, match=r"temperature \(0\) must be above 0"):
        Softmax(temperature=0)
    with pytest.raises(ValueError, match=r"base \(1\) must be above 1"):
        Softmax(base=1)


def on_the_simplex(scores):
    """The nearest distribution to one row of scores, by bisection for its threshold."""
    low, high = float(scores.min()) - 1, float(scores.max())
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if (scores - middle).clamp(min=0).sum() > 1 else (low, middle)
    return (scores - low).clamp(min=0)


def test_sparsemax_of_two_scores_is_half_their_difference_until_one_has_all():
    scores = torch.tensor([[0.0, 0.0], [0.5, 0.0], [1.0, 0.0], [3.0, 0.0]])
    expected = torch.tensor([[0.5, 0.5], [0.75, 0.25], [1.0, 0.0], [1.0, 0.0]])
    assert_close(weigh(Sparsemax(), scores), expected)


@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0])
def test_sparsemax_is_the_nearest_point_of_the_simplex(spread):
    scores = spread * vectors(5, 11)
    expected = torch.stack([on_the_simplex(row) for row in scores])
    assert_close(weigh(Sparsemax(), scores), expected, atol=1e-9, rtol=0)


def test_sparsemax_under_a_mask_is_sparsemax_of_what_is_left():
    scores = vectors(5, 11)
    mask = torch.rand(5, 11) > 0.4
    mask[:, 0] = True
    weights = weigh(Sparsemax(), scores, mask)
    for row, visible, own in zip(weights, mask, scores, strict=True):
        assert_close(row[visible], on_the_simplex(own[visible]), atol=1e-9, rtol=0)
        assert (row[~visible] == 0).all()


def test_sparsemax_has_the_gradient_of_its_definition():
    scores = vectors(5, 7).requires_grad_()
    mask = torch.ones(5, 7, dtype=torch.bool)
    mask[1, 2:], mask[3] = False, False
    assert gradcheck(lambda s: weigh(Sparsemax(), s), scores)
    assert gradcheck(lambda s: weigh(Sparsemax(), s, mask), scores)


@pytest.mark.parametrize("height", [0.0, 1e5, 1e8, -1e8])
def test_sparsemax_does_not_care_how_high_all_scores_stand(height):
    scores = torch.tensor([[0.0, 8.0, -8.0]]) + height  # exact in single precision at any height
    assert_close(weigh(Sparsemax(), scores), torch.tensor([[0.0, 1.0, 0.0]]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sparsemax_bears_large_scores_in_small_numbers(dtype):
    scores = torch.tensor([[5000.0, 3.0]], dtype=dtype)
    assert weigh(Sparsemax(), scores).tolist() == [[1.0, 0.0]]


def test_proportional_divides_by_the_sum():
    scores = torch.tensor([[1.0, 2.0, 5.0], [0.0, 0.0, 3.0]])
    expected = torch.tensor([[0.125, 0.25, 0.625], [0.0, 0.0, 1.0]])
    assert_close(weigh(Proportional(), scores), expected)


def test_proportional_counts_only_what_may_be_seen():
    mask = torch.tensor([[True, True, False]])
    assert_close(
        weigh(Proportional(), torch.tensor([[1.0, 3.0, 5.0]]), mask),
        torch.tensor([[0.25, 0.75, 0.0]]),
    )


def test_scores_that_add_up_to_nothing_read_nothing():
    scores = torch.tensor([[0.0, 0.0, 0.0], [1.0, -1.0, 0.0]], requires_grad=True)
    weights = weigh(Proportional(), scores)
    assert weights.tolist() == [[0.0] * 3] * 2
    weights.sum().backward()
    assert scores.grad.isfinite().all()


def test_given_weights_are_the_weights_whatever_the_scores():
    handed = torch.tensor([0.1, 0.1, 0.5, 0.1, 0.2])
    weights = weigh(Given(handed), torch.randn(2, 3, 5))
    assert_close(weights, handed.expand(2, 3, 5))


def test_given_weights_stay_behind_the_mask():
    mask = torch.tensor([[True, False, True]])
    weights = weigh(Given(torch.tensor([0.2, 0.3, 0.5])), torch.randn(1, 3), mask)
    assert_close(weights, torch.tensor([[0.2, 0.0, 0.5]]))


def test_given_weights_must_fit_the_scores():
    with pytest.raises(ValueError, match=r"Given weights \(3, 7\) do not fit.* \(2, 3, 5\)"):
        weigh(Given(torch.rand(3, 7)), torch.randn(2, 3, 5))


def test_a_hard_look_in_training_is_drawn_from_the_softmax():
    scores = torch.tensor([0.0, 1.0, -1.0, 2.0]).expand(40_000, 1, 4)
    mask = torch.tensor([True, True, False, True])
    weights = weigh(Hard(), scores, mask)
    assert (weights.sum(dim=-1) == 1).all()
    assert ((weights == 0) | (weights == 1)).all()
    expected = scores[0, 0].masked_fill(~mask, -math.inf).softmax(dim=-1)
    assert_close(weights.mean(dim=(0, 1)), expected, atol=0.01, rtol=0)


def test_a_hard_look_in_evaluation_takes_the_most_likely():
    scores = torch.randn(5, 7, 11)
    weights, drawn = Hard().eval()(scores, None, scores)
    assert torch.equal(drawn.positions, scores.argmax(dim=-1))
    assert torch.equal(weights.argmax(dim=-1), drawn.positions)


def test_a_hard_look_in_evaluation_is_drawn_when_asked():
    scores = torch.zeros(20_000, 1, 2)
    weights = weigh(Hard(evaluate="sample").eval(), scores)
    assert abs(float(weights[..., 0].mean()) - 0.5) < 0.02


def test_a_hard_look_can_be_drawn_again_from_the_same_generator():
    scores = torch.randn(5, 7, 11)
    first, second = (
        weigh(Hard(generator=torch.Generator().manual_seed(3)), scores) for _ in range(2)
    )
    assert torch.equal(first, second)


def test_a_hard_look_leaves_its_log_probability_and_entropy():
    scores = vectors(5, 7, 11).requires_grad_()
    mask = torch.rand(5, 7, 11) > 0.3
    mask[..., 0] = True
    _, drawn = Hard()(scores, mask, scores)
    judge = Categorical(logits=scores.masked_fill(~mask, -1e30))
    assert_close(drawn.log_probability, judge.log_prob(drawn.positions))
    assert_close(drawn.entropy, judge.entropy())
    for ours, theirs in (
        (drawn.log_probability, judge.log_prob(drawn.positions)),
        (drawn.entropy, judge.entropy()),
    ):
        (gradient,) = torch.autograd.grad(ours.sum(), scores, retain_graph=True)
        (expected,) = torch.autograd.grad(theirs.sum(), scores, retain_graph=True)
        assert_close(gradient, expected)


def test_reinforce_follows_the_gradient_of_the_expected_reward():
    scores = torch.tensor([0.5, -0.2, 0.1], dtype=torch.float64, requires_grad=True)
    reward = torch.tensor([1.0, 3.0, -2.0], dtype=torch.float64)
    (exact,) = torch.autograd.grad(scores.softmax(dim=-1) @ reward, scores)
    _, drawn = Hard()(scores.expand(200_000, 1, 3), None, None)
    baseline = 1.0  # any constant leaves the expectation as it is
    stand_in = (drawn.log_probability * (reward[drawn.positions] - baseline)).mean()
    (estimate,) = torch.autograd.grad(stand_in, scores)
    assert_close(estimate, exact, atol=0.02, rtol=0)


def test_a_blind_hard_look_leaves_zeros():
    scores = torch.randn(2, 3, 5, requires_grad=True)
    mask = torch.ones(2, 3, 5, dtype=torch.bool)
    mask[1, 2] = False
    weights, drawn = Hard()(scores, mask, scores)
    assert weights[1, 2].tolist() == [0.0] * 5
    assert drawn.log_probability[1, 2] == 0
    assert drawn.entropy[1, 2] == 0
    (drawn.log_probability + drawn.entropy).sum().backward()
    assert (scores.grad[1, 2] == 0).all()
    assert scores.grad.isfinite().all()


def test_hard_knows_three_ways_to_evaluate():
    message = r"evaluate \('best'\) must be 'argmax', 'sample' or 'expected'"
    with pytest.raises(ValueError, match=message):
        Hard(evaluate="best")


def test_a_hard_look_leaves_the_distribution_it_was_drawn_from():
    """As doubly stochastic attention needs it, with its gradient."""
    scores = vectors(5, 7, 11).requires_grad_()
    mask = torch.rand(5, 7, 11) > 0.3
    mask[..., 0], mask[2, 3] = True, False
    _, drawn = Hard()(scores, mask, scores)
    expected = scores.masked_fill(~mask, -math.inf).softmax(dim=-1).nan_to_num(0.0)
    assert_close(drawn.distribution, expected)
    upstream = vectors(5, 7, 11)
    (gradient,) = torch.autograd.grad((drawn.distribution * upstream).sum(), scores)
    exact = torch.where(mask, scores, -1e30).softmax(dim=-1).masked_fill(~mask, 0.0)
    (correct,) = torch.autograd.grad((exact * upstream).sum(), scores)
    assert_close(gradient, correct)


def test_a_hard_look_in_evaluation_may_read_what_sampling_reads_on_average():
    attention = Attention(Dot(), Hard(evaluate="expected"))
    query, keys = vectors(2, 3, 5), vectors(2, 7, 5)
    read = attention.eval()(query, keys, keys)
    soft = (query @ keys.mT).softmax(dim=-1)
    assert_close(read.weights, soft)
    assert_close(read.context, soft @ keys)
    assert torch.equal(read.carried.positions, soft.argmax(dim=-1))
    sampled = attention.train()(query, keys, keys)
    assert ((sampled.weights == 0) | (sampled.weights == 1)).all()
    assert_close(sampled.pick(1).carried.distribution, soft[1:])


def windowed(row, length, centre, reach):
    """softmax over the positions of one row within `reach` of `centre`, the rest 0."""
    inside = [s for s in range(length) if abs(s - centre) <= reach]
    total = sum(math.exp(row[s]) for s in inside)
    return [math.exp(row[s]) / total if s in inside else 0.0 for s in range(len(row))]


def test_local_monotonic_marches_in_step_with_the_target():
    scores = vectors(2, 7, 7)
    weights, step = LocalMonotonic(reach=2)(scores, None, None)
    for b in range(2):
        for t in range(7):
            expected = torch.tensor(windowed(scores[b, t].tolist(), 7, t, 2), dtype=torch.float64)
            assert_close(weights[b, t], expected)
    assert step == 7


def test_local_monotonic_goes_on_from_the_step_it_carries():
    scores, weighing = vectors(2, 5, 11), LocalMonotonic(reach=2)
    whole, _ = weighing(scores, None, None)
    step, rows = None, []
    for row in scores.split(1, dim=1):
        weights, step = weighing(row, None, None, step)
        rows.append(weights)
    assert_close(torch.cat(rows, dim=1), whole)


def test_local_monotonic_stays_at_the_end_of_a_shorter_source():
    scores = vectors(1, 7, 5)
    mask = torch.tensor([True, True, True, False, False])
    weights, _ = LocalMonotonic(reach=1)(scores, mask, None)
    for t in range(7):
        centre = min(t, 2)
        expected = windowed(scores[0, t].tolist(), 3, centre, 1)
        assert_close(weights[0, t], torch.tensor(expected, dtype=torch.float64))


def test_local_monotonic_counts_from_the_first_word_of_a_source_padded_on_the_left():
    scores = vectors(1, 5, 11)
    words = scores[..., 4:]
    mask = torch.arange(11) >= 4
    weights, _ = LocalMonotonic(reach=2)(scores, mask, None)
    alone, _ = LocalMonotonic(reach=2)(words, None, None)
    assert_close(weights[..., 4:], alone)
    assert (weights[..., :4] == 0).all()


def test_local_predictive_counts_from_the_first_word_of_a_source_padded_on_the_left():
    weighing = LocalPredictive(3, reach=2).double()
    scores, queries = vectors(1, 5, 11), vectors(1, 5, 3)
    weights, centres = weighing(scores, torch.arange(11) >= 4, queries)
    alone, places = weighing(scores[..., 4:], None, queries)
    assert_close(weights[..., 4:], alone)
    assert_close(centres, places + 4)


def test_local_predictive_puts_a_bell_after_the_softmax():
    weighing = LocalPredictive(3, hidden_size=5, reach=2).double()
    scores, queries = vectors(2, 7, 11), 3 * vectors(2, 7, 3)
    lengths = [11, 6]
    mask = (torch.arange(11) < torch.tensor(lengths).unsqueeze(-1)).unsqueeze(1)
    weights, centres = weighing(scores, mask, queries)
    W, v = weighing.hidden.weight.detach(), weighing.place.weight[0].detach()
    for b, length in enumerate(lengths):
        for t in range(7):
            inner = float(v @ torch.tanh(W @ queries[b, t]))
            centre = length / (1 + math.exp(-inner))
            soft = windowed(scores[b, t].tolist(), length, centre, 2)
            sigma = 2 / 2
            bell = [math.exp(-((s - centre) ** 2) / (2 * sigma**2)) for s in range(11)]
            expected = [a * g for a, g in zip(soft, bell, strict=True)]
            assert float(centres[b, t].detach()) == pytest.approx(centre)
            assert_close(weights[b, t].detach(), torch.tensor(expected, dtype=torch.float64))
    assert (weights.sum(dim=-1) < 1).all()


def test_the_place_local_predictive_looks_at_is_learned():
    weighing = LocalPredictive(3, reach=3).double()
    scores, queries = vectors(2, 5, 7), vectors(2, 5, 3).requires_grad_()
    values = vectors(7)
    (weigh(weighing, scores, None, queries) @ values).sum().backward()
    for learned in (weighing.hidden.weight, weighing.place.weight, queries):
        assert learned.grad.abs().sum() > 0


@pytest.mark.parametrize("make", [LocalMonotonic, lambda reach: LocalPredictive(3, reach=reach)])
def test_a_window_reaches_at_least_one_position(make):
    with pytest.raises(ValueError, match=r"reach \(0\) must be 1 or more"):
        make(reach=0)


def test_local_predictive_says_which_queries_it_was_built_for():
    with pytest.raises(ValueError, match=r"queries \(2, 5, 3\) must end in the size 7"):
        weigh(LocalPredictive(7), torch.randn(2, 5, 11), None, torch.randn(2, 5, 3))


def bell_sum(length, centre, reach):
    """What a row of even scores adds up to, by hand: the mean of the bell over its window."""
    inside = [s for s in range(length) if abs(s - centre) <= reach]
    sigma = reach / 2
    return sum(math.exp(-((s - centre) ** 2) / (2 * sigma**2)) for s in inside) / len(inside)


@pytest.fixture
def predicting():
    """A local-p weighing that looks at the share sigmoid(1.5 · tanh(1)) of what is there."""
    weighing = LocalPredictive(1, reach=10)
    with torch.no_grad():
        weighing.hidden.weight.fill_(1.0)
        weighing.place.weight.fill_(1.5)
    return weighing


PLACE = 1 / (1 + math.exp(-1.5 * math.tanh(1.0)))


@pytest.mark.parametrize("keys", [1_001, 20_011, 70_001])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_local_predictive_finds_its_place_whatever_autocast_does(dtype, keys, predicting):
    queries, values = torch.ones(1, 1, 1), torch.ones(1, keys, 1)
    with torch.autocast("cpu", dtype):
        read = Attention(Dot(), predicting)(queries, torch.zeros(1, keys, 1), values)
    assert read.carried.item() == pytest.approx(keys * PLACE, rel=1e-6)
    assert read.weights.sum().item() == pytest.approx(bell_sum(keys, keys * PLACE, 10), abs=1e-3)


@pytest.mark.parametrize("keys", [1_001, 20_011, 70_001])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_local_predictive_in_half_precision_finds_its_place(dtype, keys, predicting):
    scores, queries = torch.zeros(1, 1, keys, dtype=dtype), torch.ones(1, 1, 1, dtype=dtype)
    weights, centres = predicting.to(dtype)(scores, None, queries)
    assert weights.dtype == dtype
    assert centres.item() == pytest.approx(keys * PLACE, rel=1e-6)
    near = torch.finfo(dtype).eps
    total = weights.double().sum().item()
    assert total == pytest.approx(bell_sum(keys, keys * PLACE, 10), abs=near)
    weights.float().sum().backward()
    assert all(learned.grad.isfinite().all() for learned in predicting.parameters())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_local_monotonic_in_half_precision_counts_every_step(dtype):
    scores = torch.zeros(1, 1, 5_003, dtype=dtype)
    weights, step = LocalMonotonic(reach=2)(scores, None, None, 4_097)
    assert weights[0, 0].nonzero().flatten().tolist() == [4_095, 4_096, 4_097, 4_098, 4_099]
    assert step == 4_098


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_sparsemax_in_half_precision_counts_every_rank(dtype):
    scores = (vectors(3, 5_003) / 1_000).to(dtype)  # so near that many stay in
    weights = weigh(Sparsemax(), scores)
    assert weights.dtype == dtype
    expected = torch.stack([on_the_simplex(row) for row in scores.double()])
    assert_close(weights.double(), expected, atol=1e-6, rtol=torch.finfo(dtype).eps)


def test_a_share_of_hard_queries_reads_the_expected_value_in_training_and_draws_nothing():
    torch.manual_seed(0)
    scores = torch.tensor([1.0, 0.0, -1.0]).expand(4000, 1, 3)
    weigh = Hard(expected_share=0.25).train()
    weights, sample = weigh(scores, None, scores)
    averaged = (weights == scores.softmax(dim=-1)).all(dim=-1)
    assert averaged.float().mean().item() == pytest.approx(0.25, abs=0.03)
    assert ((weights == 1).any(dim=-1) == ~averaged).all()
    assert ((sample.log_probability == 0) == averaged).all()
    weights, _ = weigh.eval()(scores, None, scores)
    assert (weights == torch.tensor([1.0, 0.0, 0.0])).all()
