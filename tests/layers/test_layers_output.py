"""The loss over a vocabulary, against torch's own, in chunks of any size."""

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from regard.layers import output
from regard.layers.output import linear_cross_entropy


def parts(dtype=torch.float64):
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(3, 5, 7, generator=generator, dtype=dtype, requires_grad=True)
    weight = torch.randn(11, 7, generator=generator, dtype=dtype, requires_grad=True)
    bias = torch.randn(11, generator=generator, dtype=dtype, requires_grad=True)
    targets = torch.randint(11, (3, 5), generator=generator)
    mask = torch.rand(3, 5, generator=generator) < 0.6
    return features, weight, bias, targets, mask


def theirs(features, weight, bias, targets, mask, smoothing):
    logits = F.linear(features, weight, bias)
    if mask is not None:
        logits, targets = logits[mask], targets[mask]
    flat = logits.reshape(-1, logits.shape[-1])
    return F.cross_entropy(flat, targets.flatten(), reduction="sum", label_smoothing=smoothing)


@pytest.mark.parametrize(
    ("smoothing", "masked", "biased", "chunk"),
    [  # every two of them in every combination
        (0.0, False, True, 1),
        (0.1, True, False, 1),
        (0.0, True, True, 11 * 4),
        (0.1, False, False, 11 * 4),
        (0.0, True, False, 1 << 20),
        (0.1, False, True, 1 << 20),
    ],
)
def test_loss_and_gradients_agree_with_torch(smoothing, masked, biased, chunk, monkeypatch):
    monkeypatch.setattr(output, "MAX_LOGITS_PER_CHUNK", chunk)
    features, weight, bias, targets, mask = parts()
    bias, mask = (bias if biased else None), (mask if masked else None)
    inputs = [x for x in (features, weight, bias) if x is not None]
    ours = linear_cross_entropy(features, weight, bias, targets, mask, smoothing)
    expected = theirs(features, weight, bias, targets, mask, smoothing)
    assert_close(ours, expected)
    mine = torch.autograd.grad(ours * 0.37, inputs)
    wanted = torch.autograd.grad(expected * 0.37, inputs)
    for a, b in zip(mine, wanted, strict=True):
        assert_close(a, b)


def test_nothing_to_predict_costs_nothing():
    features, weight, bias, targets, mask = parts()
    loss = linear_cross_entropy(features, weight, bias, targets, torch.zeros_like(mask))
    loss.backward()
    assert loss == 0
    assert not features.grad.any()


def test_a_word_that_cannot_be_has_a_finite_price():
    features = torch.tensor([[[300.0]]])
    weight = torch.tensor([[1.0], [-1.0]])
    loss = linear_cross_entropy(features, weight, None, torch.tensor([[1]]))
    assert_close(loss, torch.tensor(600.0))


def test_without_gradients_it_is_the_same_number():
    features, weight, bias, targets, mask = parts(torch.float32)
    learning = linear_cross_entropy(features, weight, bias, targets, mask)
    with torch.no_grad():
        assert_close(linear_cross_entropy(features, weight, bias, targets, mask), learning)


class Products(TorchDispatchMode):
    """Counts the matrix products, by far the most of the work."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += function.overloadpacket.__name__.strip("_") in ("mm", "addmm", "linear")
        return function(*args, **(kwargs or {}))


def products(*, needed=("features", "weight", "bias")):
    """How many matrix products the loss takes when these are to have gradients."""
    features, weight, bias, targets, _ = parts()
    for name, tensor in (("features", features), ("weight", weight), ("bias", bias)):
        tensor.requires_grad_(name in needed)
    with Products() as products:
        linear_cross_entropy(features, weight, bias, targets)
    return products.count


@pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
def test_where_gradients_are_off_only_the_logits_are_computed(off):
    assert products() == 3  # the logits, and the gradients of features and weights
    with off():
        assert products() == 1


def test_what_is_not_learned_costs_no_gradient():
    assert products(needed=("features",)) == 2
    assert products(needed=("weight", "bias")) == 2
    assert products(needed=("bias",)) == 1
    assert products(needed=()) == 1


@pytest.mark.parametrize("needed", [("features",), ("weight",), ("bias",), ("weight", "bias")])
def test_gradients_of_some_inputs_alone_agree_with_torch(needed):
    features, weight, bias, targets, mask = parts()
    named = {"features": features, "weight": weight, "bias": bias}
    for name, tensor in named.items():
        tensor.requires_grad_(name in needed)
    inputs = [named[name] for name in needed]
    mine = torch.autograd.grad(linear_cross_entropy(features, weight, bias, targets, mask), inputs)
    wanted = torch.autograd.grad(theirs(features, weight, bias, targets, mask, 0.0), inputs)
    for a, b in zip(mine, wanted, strict=True):
        assert_close(a, b)


def test_a_graph_that_is_kept_can_be_gone_through_again():
    features, weight, bias, targets, mask = parts()
    inputs = (features, weight, bias)
    ours = linear_cross_entropy(*inputs, targets, mask)
    expected = torch.autograd.grad(theirs(*inputs, targets, mask, 0.0), inputs)
    for scale in (1.0, -0.5, 3.0):
        found = torch.autograd.grad(ours * scale, inputs, retain_graph=True)
        for a, b in zip(found, expected, strict=True):
            assert_close(a, scale * b)
            a.zero_()  # what was handed out is the caller's own
    ours.backward(retain_graph=True)
    ours.backward()
    for tensor, gradient in zip(inputs, expected, strict=True):
        assert_close(tensor.grad, 2 * gradient)


def test_a_graph_that_is_not_kept_is_gone_as_torch_says():
    features, weight, bias, targets, mask = parts()
    loss = linear_cross_entropy(features, weight, bias, targets, mask)
    loss.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        loss.backward()


def test_a_gradient_of_the_gradient_is_refused_and_never_left_out_in_silence():
    features, weight, bias, targets, mask = parts()
    # The square has a second derivative of its own, beside which a missing one would go unseen.
    loss = linear_cross_entropy(features, weight, bias, targets, mask) + (features**2).sum()
    with pytest.raises(RuntimeError, match="linear_cross_entropy has no second derivative"):
        torch.autograd.grad(loss, features, create_graph=True)
