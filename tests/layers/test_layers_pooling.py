"""Means and maxima over what is real."""

import torch
from torch.testing import assert_close

from regard.layers.pooling import maximum_of_words, mean_of_words

VECTORS = torch.tensor([[[1.0, -4.0], [3.0, -2.0], [9.0, 9.0]], [[7.0, 7.0]] * 3])
MASK = torch.tensor([[True, True, False], [False, False, False]])


def test_padding_is_no_part_of_a_mean_or_a_maximum():
    assert_close(mean_of_words(VECTORS, MASK), torch.tensor([[2.0, -3.0], [0.0, 0.0]]))
    assert_close(maximum_of_words(VECTORS, MASK), torch.tensor([[3.0, -2.0], [0.0, 0.0]]))


def test_a_row_of_padding_alone_has_no_gradient_and_no_nan():
    vectors = VECTORS.clone().requires_grad_()
    for pool in (mean_of_words, maximum_of_words):
        (gradient,) = torch.autograd.grad(pool(vectors, MASK).sum(), vectors)
        assert gradient[1].eq(0).all()
        assert gradient[0, 2].eq(0).all()
