"""The loss over a vocabulary, against torch's own, in chunks of any size."""

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

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


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("chunk", [1, 11 * 4, 1 << 20])
def test_loss_and_gradients_agree_with_torch(smoothing, masked, biased, chunk, monkeypatch):
    monkeypatch.setattr(output, "CHUNK", chunk)
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
