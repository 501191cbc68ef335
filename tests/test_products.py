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


@needs_onednn
def test_a_slice_is_never_given_to_the_slow_kernel(monkeypatch):
    weights = []
    multiply = products.onednn_linear
    monkeypatch.setattr(
        products, "onednn_linear", lambda x, w, b: (weights.append(w), multiply(x, w, b))[1]
    )
    table, inputs = torch.randn(9, 40), torch.randn(13, 30)[:, 5:22]
    for weight in (table[:, 3:20], table[:, :17], torch.randn(17, 9).mT, table[::2, ::2][:, :17]):
        assert_close(linear(inputs, weight), F.linear(inputs, weight))
        total = torch.randn(13, 50)[:, : len(weight)]
        assert_close(products.add_linear(total, inputs, weight), total + inputs @ weight.mT)
    assert len(weights) == 8
    assert all(weight.is_contiguous() or weight.mT.is_contiguous() for weight in weights)


@needs_onednn
@pytest.mark.parametrize("rows", [1, 31, 32, 65, 256, 300])
def test_few_numbers_of_rows_need_a_kernel_and_results_do_not_tell(rows, monkeypatch):
    shapes = []
    multiply = products.onednn_linear
    monkeypatch.setattr(
        products, "onednn_linear", lambda x, w, b: (shapes.append(x.shape), multiply(x, w, b))[1]
    )
    inputs, gradient = torch.randn(rows, 5), torch.randn(rows, 7)
    weight, bias = torch.randn(7, 5), torch.randn(7)
    assert_close(linear(inputs, weight, bias), F.linear(inputs, weight, bias))
    expected = gradient.mT @ inputs
    assert_close(weight_gradient(gradient, inputs), expected, atol=1e-4, rtol=1e-4)
    assert shapes[0][0] % (8 if rows <= 256 else 32) == 0
    assert all(shape[1] % 32 == 0 for shape in shapes[1:])


@needs_onednn
def test_torch_s_own_products_can_be_had_to_the_last_digit():
    inputs, weight = tensors((64, 257), (33, 257))
    with products.use_torch_products():
        assert torch.equal(linear(inputs, weight), F.linear(inputs, weight))
        assert not products.takes_onednn(inputs, weight)
    assert products.takes_onednn(inputs, weight)
