import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from regard.graph import (
    Graph,
    exp,
    log,
    log_softmax,
    parameter,
    relu,
    sigmoid,
    softmax,
    sqrt,
    tanh,
    where,
)


@pytest.mark.parametrize(
    "ours,theirs",
    [
        (exp, torch.exp),
        (tanh, torch.tanh),
        (sigmoid, torch.sigmoid),
        (relu, torch.relu),
    ],
)
def test_activations_agree_with_torch(agree, random, ours, theirs):
    agree(ours, theirs, 3.0 * random(5, 3))
    agree(ours, theirs, random())


@pytest.mark.parametrize("ours,theirs", [(log, torch.log), (sqrt, torch.sqrt)])
def test_log_and_root_agree_with_torch_for_positive_numbers(agree, random, ours, theirs):
    agree(ours, theirs, np.exp(random(5, 3)))


@pytest.mark.parametrize(
    "ours,theirs", [(softmax, torch.softmax), (log_softmax, torch.log_softmax)]
)
@pytest.mark.parametrize("axis", [-1, 0])
def test_softmax_agrees_with_torch_over_any_axis(agree, random, ours, theirs, axis):
    agree(lambda x: ours(x, axis), lambda x: theirs(x, axis), random(5, 3, 7))


def test_nothing_overflows_far_from_zero():
    x = parameter("x", [-1000.0, 0.0, 1000.0])
    assert_allclose(sigmoid(x).value, [0.0, 0.5, 1.0])
    assert_allclose(softmax(x).value, [0.0, 0.0, 1.0])
    assert_allclose(log_softmax(x).value, [-2000.0, -1000.0, 0.0])


def test_the_sigmoid_keeps_its_digits_where_it_is_small():
    assert_allclose(sigmoid(parameter("x", -50.0)).value, np.exp(-50.0), rtol=1e-12)


def test_relu_has_no_slope_at_zero():
    x = parameter("x", [-1.0, 0.0, 2.0])
    Graph(relu(x).sum()).backward()
    assert_array_equal(x.gradient, [0.0, 0.0, 1.0])


def test_scores_that_are_hidden_get_no_weight_and_no_gradient(agree, random):
    mask = np.tril(np.ones((5, 5), dtype=bool))
    agree(
        lambda x: softmax(where(mask, x, -np.inf)),
        lambda x: x.masked_fill(~torch.tensor(mask), -torch.inf).softmax(-1),
        random(3, 5, 5),
    )


def test_a_query_that_may_look_nowhere_reads_zeros_with_zero_gradient():
    scores = parameter("scores", [[1.0, 2.0], [3.0, 4.0]])
    weights = softmax(where([[True, True], [False, False]], scores, -np.inf))
    Graph((weights**2).sum()).backward()
    assert_array_equal(weights.value[1], [0.0, 0.0])
    assert_array_equal(scores.gradient[1], [0.0, 0.0])
    assert scores.gradient[0].any()


def test_over_an_empty_axis_the_softmax_is_empty():
    assert softmax(parameter("scores", np.zeros((3, 0)))).shape == (3, 0)


def test_a_softmax_over_an_axis_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"softmax axis=2 of x \(5, 3\): axis 2 is out of bounds"):
        softmax(parameter("x", np.zeros((5, 3))), axis=2)
