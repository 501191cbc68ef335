import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from regard import products
from regard.products import Linear, linear, matmul, weight_gradient

needs_onednn = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="torch was built without oneDNN"
)


@pytest.fixture(autouse=True)
def every_product_by_onednn(monkeypatch):
    monkeypatch.setattr(products, "MIN_PRODUCTS", 1)
    monkeypatch.setattr(products, "prefers_onednn", lambda: True)


def tensors(*shapes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator).requires_grad_() for shape in shapes]


@needs_onednn
@pytest.mark.parametrize("leading", [(7,), (2, 7), (2, 3, 7), (1,)])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize(("input_size", "output_size"), [(5, 11), (11, 5)])
def test_values_and_gradients_are_torch_s_own(leading, biased, input_size, output_size):
    inputs, weight, bias = tensors(
        (*leading, input_size), (output_size, input_size), (output_size,)
    )
    leaves = [inputs, weight, *([bias] if biased else [])]
    found = linear(inputs, weight, bias if biased else None)
    expected = F.linear(inputs, weight, bias if biased else None)
    assert_close(found, expected)
    upstream = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1))
    for one, other in zip(
        torch.autograd.grad(found, leaves, upstream),
        torch.autograd.grad(expected, leaves, upstream),
        strict=True,
    ):
        assert_close(one, other)


@needs_onednn
def test_a_gradient_has_a_gradient():
    inputs, weight = tensors((7, 5), (3, 5))

    def penalty(product):
        (slope,) = torch.autograd.grad(product.square().sum(), inputs, create_graph=True)
        return torch.autograd.grad(slope.square().sum(), weight)[0]

    assert_close(penalty(linear(inputs, weight)), penalty(F.linear(inputs, weight)))


@needs_onednn
def test_matrices_that_lie_crosswise_in_memory_are_read_right():
    one, other = tensors((5, 7), (3, 7))
    assert_close(matmul(one.mT, other.mT.mT[:, :5].mT), one.mT @ other[:, :5].mT)
    assert_close(weight_gradient(one, one * 2), one.mT @ one * 2)
    assert_close(
        weight_gradient(one, other[:, :5].repeat(2, 1)[:5]), one.mT @ other[:, :5].repeat(2, 1)[:5]
    )


@needs_onednn
def test_frozen_weights_get_no_gradient_and_none_is_computed_without_need():
    inputs, weight = tensors((7, 5), (3, 5))
    linear(inputs, weight.detach()).sum().backward()
    assert_close(inputs.grad, weight.detach().sum(dim=0).expand(7, 5))
    with torch.no_grad():
        assert linear(inputs, weight).grad_fn is None


@pytest.mark.parametrize(
    ("inputs", "weight"),
    [
        (torch.randn(7, 5, dtype=torch.float64), torch.randn(3, 5, dtype=torch.float64)),
        (torch.randn(7, 5).bfloat16(), torch.randn(3, 5).bfloat16()),
        (torch.randn(7, 5, device="meta"), torch.randn(3, 5, device="meta")),
    ],
)
def test_other_numbers_and_places_are_left_to_torch(inputs, weight):
    assert not products.takes_onednn(inputs, weight)
    assert linear(inputs, weight).shape == (7, 3)


def test_autocast_is_left_to_torch():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert linear(torch.randn(7, 5), torch.randn(3, 5)).dtype == torch.bfloat16


@needs_onednn
def test_products_here_do_go_another_way():
    inputs, weight = tensors((7, 5), (3, 5))
    view = linear(inputs, weight).grad_fn  # the product stands behind it
    assert "_Linear" in view.next_functions[0][0].name()


def test_nothing_times_something_is_nothing():
    assert linear(torch.randn(0, 5), torch.randn(3, 5)).shape == (0, 3)


def test_small_products_are_left_to_torch(monkeypatch):
    monkeypatch.setattr(products, "MIN_PRODUCTS", 7 * 5 * 3)
    assert products.takes_onednn(torch.randn(7, 5), torch.randn(3, 5))
    assert not products.takes_onednn(torch.randn(6, 5), torch.randn(3, 5))


def test_the_layer_is_torch_s_with_torch_s_weights():
    layer, theirs = Linear(5, 3), nn.Linear(5, 3)
    theirs.load_state_dict(layer.state_dict())
    inputs = torch.randn(2, 7, 5)
    assert_close(layer(inputs), theirs(inputs))


def test_sizes_that_do_not_fit_are_refused_in_torch_s_words():
    with pytest.raises(RuntimeError, match=r"7x4 and 5x3"):
        linear(torch.randn(7, 4), torch.randn(3, 5))
