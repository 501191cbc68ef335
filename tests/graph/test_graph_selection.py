import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.testing import assert_allclose, assert_array_equal

from regard.graph import Graph, cross_entropy, data, embedding, parameter, where


@pytest.mark.parametrize("ids", [4, [1, 1, 0, 6], [[2, 3], [3, 3], [5, 0]]])
def test_an_embedding_agrees_with_torch_and_gathers_over_repeated_ids(agree, random, ids):
    agree(
        lambda table: embedding(table, ids),
        lambda table: F.embedding(torch.tensor(ids), table),
        random(7, 3),
    )


def test_cross_entropy_agrees_with_torch(agree, random):
    ids = [6, 0, 3, 3, 1]
    agree(
        lambda logits: cross_entropy(logits, ids),
        lambda logits: F.cross_entropy(logits, torch.tensor(ids)),
        random(5, 7),
    )


def test_cross_entropy_takes_the_mean_over_all_leading_axes(agree, random):
    ids = np.array([[1, 2, 0], [6, 6, 3]])
    agree(
        lambda logits: cross_entropy(logits, ids),
        lambda logits: F.cross_entropy(logits.reshape(6, 7), torch.tensor(ids).reshape(6)),
        random(2, 3, 7),
    )
    agree(
        lambda logits: cross_entropy(logits, 4),
        lambda logits: F.cross_entropy(logits, torch.tensor(4)),
        random(7),
    )


def test_the_gradient_of_cross_entropy_is_the_error_of_the_prediction():
    logits = parameter("logits", [[0.0, 0.0, np.log(2.0)]])
    loss = cross_entropy(logits, [2])
    Graph(loss).backward()
    assert_allclose(loss.value, np.log(2.0))
    assert_allclose(logits.gradient, [[0.25, 0.25, -0.5]])


def test_a_choice_agrees_with_torch_and_broadcasts(agree, random):
    mask = np.array([[True, False, True], [False, False, True]])
    agree(
        lambda a, b: where(mask, a, b),
        lambda a, b: torch.where(torch.tensor(mask), a, b),
        random(3),
        random(5, 2, 1),
    )


def test_ids_and_masks_are_nodes_that_can_change_but_have_no_gradient():
    table, ids = parameter("table", [[1.0], [2.0], [4.0]]), data("ids", [0, 1], dtype=int)
    mask = data("mask", [[True], [True]], dtype=bool)
    graph = Graph(where(mask, embedding(table, ids), 0.0).sum())
    assert graph.output.value == 3.0
    ids.value, mask.value = [2, 2], [[True], [False]]
    assert graph.forward() == 4.0
    graph.backward()
    assert ids.gradient is None
    assert mask.gradient is None
    assert_array_equal(table.gradient, [[0.0], [0.0], [1.0]])


@pytest.mark.parametrize("bad", [-1, 7])
def test_ids_outside_the_table_are_refused(bad):
    table, logits = parameter("E", np.zeros((7, 3))), parameter("logits", np.zeros((1, 7)))
    with pytest.raises(ValueError, match=rf"embedding of E .*: ids must lie in 0 … 6, got {bad}"):
        embedding(table, [2, bad])
    with pytest.raises(ValueError, match=rf"cross_entropy of .*: ids must lie in 0 … 6, got {bad}"):
        cross_entropy(logits, [bad])


def test_ids_must_be_integers():
    table = parameter("E", np.zeros((7, 3)))
    with pytest.raises(ValueError, match="must be integers, got an array of float64"):
        embedding(table, [1.0, 2.0])
    with pytest.raises(ValueError, match=r"ids must be ints, got x of float64: .* dtype=int"):
        embedding(table, data("x", [1, 2]))


def test_a_mask_must_be_boolean():
    x = parameter("x", np.zeros(2))
    with pytest.raises(ValueError, match="must be True or False, got an array of int64"):
        where([1, 0], x, 0.0)


def test_there_must_be_an_id_for_each_row_of_logits():
    logits = parameter("logits", np.zeros((5, 7)))
    with pytest.raises(ValueError, match=r"logits \(5, 7\), .* \(3,\): there must be one id for"):
        cross_entropy(logits, [1, 2, 3])
    with pytest.raises(ValueError, match="there must be at least one id"):
        cross_entropy(parameter("logits", np.zeros((0, 7))), np.zeros(0, dtype=int))


def test_a_table_has_two_axes():
    with pytest.raises(ValueError, match=r"embedding of E \(7,\), .*the table must have two axes"):
        embedding(parameter("E", np.zeros(7)), [1])


def test_a_mask_that_does_not_fit_is_refused():
    x = parameter("x", np.zeros((5, 3)))
    with pytest.raises(ValueError, match=r"where of .* \(2,\), x \(5, 3\), .*must broadcast"):
        where([True, False], x, 0.0)
