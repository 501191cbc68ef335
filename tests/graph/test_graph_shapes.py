import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from regard.graph import Graph, concatenate, data, parameter, stack


@pytest.mark.parametrize("shape", [(15,), (5, -1, 1)])
def test_reshaping_agrees_with_torch(agree, random, shape):
    agree(lambda x: x.reshape(*shape), lambda x: x.reshape(shape), random(5, 3))


@pytest.mark.parametrize("axes", [(1, 2, 0), (-1, 0, -2)])
def test_transposing_agrees_with_torch(agree, random, axes):
    agree(lambda x: x.transpose(*axes), lambda x: x.permute(axes), random(5, 3, 7))


def test_transposing_without_a_word_reverses_the_axes(agree, random):
    agree(lambda x: x.transpose(), lambda x: x.permute(2, 1, 0), random(5, 3, 7))


def test_the_matrix_transpose_swaps_the_last_two_axes(agree, random):
    agree(lambda x: x.mT, lambda x: x.mT, random(5, 3, 7))


@pytest.mark.parametrize("axis", [1, -2])
def test_joining_agrees_with_torch(agree, random, axis):
    agree(
        lambda *parts: concatenate(parts, axis=axis),
        lambda *parts: torch.cat(parts, dim=axis),
        random(5, 3, 2),
        random(5, 7, 2),
        random(5, 1, 2),
    )


@pytest.mark.parametrize("axis", [0, -1])
def test_stacking_agrees_with_torch(agree, random, axis):
    agree(
        lambda *parts: stack(parts, axis=axis),
        lambda *parts: torch.stack(parts, dim=axis),
        random(5, 3),
        random(5, 3),
    )


def test_single_numbers_stack_to_a_vector(agree, random):
    agree(lambda *parts: stack(parts), lambda *parts: torch.stack(parts), random(), random())


@pytest.mark.parametrize(
    "index",
    [
        (1, -2),
        slice(None, None, 2),
        (..., 0),
        (None, slice(1, 3)),
        [0, 2, 2],
        (slice(None), np.array([1, 1, 0])),
        (np.array([[0, 1], [4, 4]]), 2),
        np.array([True, False, True, True, False]),
    ],
    ids=str,
)
def test_indexing_agrees_with_torch(agree, random, index):
    agree(lambda x: x[index], lambda x: x[index], random(5, 3, 7))


def test_a_row_read_twice_counts_twice():
    x = parameter("x", [1.0, 2.0, 3.0])
    Graph(x[[1, 1, 0]].sum()).backward()
    assert_array_equal(x.gradient, [1.0, 2.0, 0.0])


def test_a_node_can_be_walked_through_row_by_row(agree, random):
    agree(lambda x: sum(row * row for row in x), lambda x: (x * x).sum(0), random(5, 3))


def test_an_index_changed_afterwards_changes_nothing():
    x, rows = parameter("x", [1.0, 2.0, 3.0]), [0, 1]
    picked = x[rows]
    rows[:] = [2, 2]
    Graph(picked.sum()).backward()
    assert_array_equal(x.gradient, [1.0, 1.0, 0.0])


def test_shapes_that_cannot_be_are_refused():
    x, y = parameter("x", np.zeros((5, 3))), parameter("y", np.zeros((5, 7)))
    with pytest.raises(ValueError, match=r"reshape \(4, 4\) of x \(5, 3\): cannot reshape"):
        x.reshape(4, 4)
    with pytest.raises(ValueError, match=r"concatenate of x \(5, 3\), y \(5, 7\): the shapes must"):
        concatenate([x, y])
    with pytest.raises(ValueError, match=r"stack of x \(5, 3\), y \(5, 7\): the shapes must be eq"):
        stack([x, y])
    with pytest.raises(ValueError, match=r"transpose \(0, 2, 1\) of x \(5, 3\): axes don't match"):
        x.transpose(0, 2, 1)
    with pytest.raises(ValueError, match=r"index \[7\] of x \(5, 3\): index 7 is out of bounds"):
        x[7]
    with pytest.raises(ValueError, match=r"transpose of x \(3,\): axes don't match"):
        _ = parameter("x", np.zeros(3)).mT


def test_joining_nothing_is_refused():
    with pytest.raises(ValueError, match="concatenate needs at least one part, got none"):
        concatenate([])


def test_a_node_is_no_index():
    x, ids = parameter("x", np.zeros((5, 3))), data("ids", [1, 2], dtype=int)
    with pytest.raises(
        ValueError, match=r"an index of x must be made of .*embedding\(table, ids\)"
    ):
        x[ids]


def test_a_single_number_has_no_rows():
    with pytest.raises(TypeError, match="x is a single number and has no length"):
        list(parameter("x", 1.0))
