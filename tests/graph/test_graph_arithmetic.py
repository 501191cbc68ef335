import operator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis.extra.numpy import mutually_broadcastable_shapes
from numpy.testing import assert_array_equal

from regard.graph import Graph, parameter

PAIRS = [((3,), (3,)), ((5, 1), (1, 3)), ((2, 1, 3), (5, 1)), ((), (5, 3)), ((0, 3), (3,))]
OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv]


@pytest.mark.parametrize("operate", OPERATORS)
def test_arithmetic_agrees_with_torch_and_sums_over_broadcast_axes(agree, random, operate):
    for left, right in PAIRS:
        agree(operate, operate, random(*left), random(*right))


@pytest.mark.parametrize("operate", OPERATORS)
def test_numbers_and_arrays_may_stand_on_either_side(agree, random, operate):
    array = random(5, 1) + 4.0
    tensor = torch.tensor(array)
    agree(lambda x: operate(x, 3), lambda x: operate(x, 3), random(5, 3))
    agree(lambda x: operate(3, x), lambda x: operate(3, x), random(5, 3))
    agree(lambda x: operate(x, array), lambda x: operate(x, tensor), random(3))
    agree(lambda x: operate(array, x), lambda x: operate(tensor, x), random(3))


def test_negation_agrees_with_torch(agree, random):
    agree(operator.neg, operator.neg, random(5, 3))


@pytest.mark.parametrize("exponent", [3, 1, 0, -2.0])
def test_powers_agree_with_torch_for_numbers_of_either_sign(agree, random, exponent):
    agree(lambda x: x**exponent, lambda x: x**exponent, random(5, 3))


def test_broken_powers_agree_with_torch_for_positive_numbers(agree, random):
    agree(lambda x: x**-0.5, lambda x: x**-0.5, np.exp(random(5, 3)))


def test_the_zeroth_power_is_flat_also_at_zero():
    x = parameter("x", [0.0, 2.0])
    Graph((x**0).sum()).backward()
    assert_array_equal(x.gradient, [0.0, 0.0])


def test_powers_with_a_node_as_exponent_agree_with_torch(agree, random):
    agree(operator.pow, operator.pow, np.exp(random(5, 3)), random(3))
    agree(lambda x: 2**x, lambda x: 2**x, random(5, 3))
    base = np.exp(random(5, 1))
    agree(lambda x: base**x, lambda x: torch.tensor(base) ** x, random(3))


def test_powers_of_zero_agree_with_torch(agree):
    agree(operator.pow, operator.pow, np.zeros(3), np.array([0.0, 1.0, 2.0]))


MATRICES = [
    ((3,), (3,)),
    ((2, 5, 3), (3,)),
    ((3,), (2, 3, 7)),
    ((11, 1, 5, 3), (2, 3, 7)),
    ((5, 0), (0, 7)),
]


@pytest.mark.parametrize("left,right", MATRICES)
def test_matrix_products_agree_with_torch_for_vectors_matrices_and_stacks(
    agree, random, left, right
):
    agree(operator.matmul, operator.matmul, random(*left), random(*right))


def test_an_array_may_be_the_left_matrix(agree, random):
    left = random(5, 3)
    agree(lambda x: left @ x, lambda x: torch.tensor(left) @ x, random(3, 7))


@settings(max_examples=60, deadline=None)
@given(mutually_broadcastable_shapes(num_shapes=2, max_dims=4, min_side=0, max_side=3))
def test_every_pair_of_shapes_that_broadcasts_agrees_with_torch(agree, random, shapes):
    left, right = shapes.input_shapes
    for operate in OPERATORS:
        agree(operate, operate, random(*left), random(*right))


@settings(max_examples=60, deadline=None)
@given(mutually_broadcastable_shapes(signature=np.matmul.signature, max_dims=3, max_side=3))
def test_every_pair_of_shapes_that_multiplies_as_matrices_agrees_with_torch(agree, random, shapes):
    left, right = shapes.input_shapes
    agree(operator.matmul, operator.matmul, random(*left), random(*right))


def test_shapes_that_do_not_broadcast_are_named_with_their_nodes():
    x, b = parameter("x", np.zeros((5, 3))), parameter("b", np.zeros(7))
    with pytest.raises(ValueError, match=r"add of x \(5, 3\), b \(7,\): shapes must broadcast"):
        x + b


def test_matrices_that_do_not_fit_are_named_with_their_nodes():
    w, x = parameter("W", np.zeros((5, 3))), parameter("x", np.zeros(7))
    with pytest.raises(ValueError, match=r"matmul of W \(5, 3\), x \(7,\): the last axis"):
        w @ x
    with pytest.raises(ValueError, match=r"matmul of W \(5, 3\), a nameless constant \(\)"):
        w @ 2.0
