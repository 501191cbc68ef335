import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from regard.graph import Graph, parameter


@pytest.mark.parametrize("axis,keepdims", [(1, False), (-1, True), ((0, 2), False)])
@pytest.mark.parametrize(
    "name,theirs", [("sum", torch.sum), ("mean", torch.mean), ("max", torch.amax)]
)
def test_reductions_agree_with_torch_over_any_axes(agree, random, name, theirs, axis, keepdims):
    agree(
        lambda x: getattr(x, name)(axis=axis, keepdims=keepdims),
        lambda x: theirs(x, dim=axis, keepdim=keepdims),
        random(5, 3, 7),
    )


def test_reductions_agree_with_torch_over_everything(agree, random):
    for shape in ((), (5, 3)):
        agree(lambda x: x.sum(), torch.sum, random(*shape))
        agree(lambda x: x.mean(), torch.mean, random(*shape))
        agree(lambda x: x.max(), torch.amax, random(*shape))


def test_kept_axes_are_kept_also_when_all_are_reduced():
    x = parameter("x", np.ones((5, 3)))
    total = x.sum(keepdims=True)
    Graph(total).backward()
    assert total.shape == (1, 1)
    assert_array_equal(x.gradient, np.ones((5, 3)))


def test_the_largest_share_the_gradient_when_there_are_several(agree):
    agree(
        lambda x: x.max(axis=1), lambda x: x.amax(1), np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    )


def test_a_variance_made_of_means_agrees_with_torch(agree, random):
    agree(
        lambda x: ((x - x.mean(axis=-1, keepdims=True)) ** 2).mean(axis=-1),
        lambda x: x.var(dim=-1, correction=0),
        random(5, 3),
    )


def test_a_missing_axis_is_refused_by_name():
    with pytest.raises(ValueError, match=r"sum axis=2 of x \(5, 3\): axis 2 is out of bounds"):
        parameter("x", np.zeros((5, 3))).sum(axis=2)


def test_there_is_no_mean_and_no_maximum_of_nothing():
    nothing = parameter("nothing", np.zeros((0, 3)))
    with pytest.raises(ValueError, match=r"mean of nothing \(0, 3\): .* at least one number"):
        nothing.mean()
    with pytest.raises(ValueError, match=r"max of nothing \(0, 3\)"):
        nothing.max()
