"""Two guesses that should agree, against torch's own losses, in chunks of any size."""

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from regard.layers import consistent
from regard.layers.consistent import consistent_cross_entropy


def parts():
    generator = torch.Generator().manual_seed(1)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64, requires_grad=True)

    targets = torch.randint(11, (3, 5), generator=generator)
    mask = torch.rand(3, 5, generator=generator) < 0.6
    return (draw(3, 5, 7), draw(3, 5, 7)), draw(11, 7), draw(11), targets, mask


def theirs(guesses, weight, bias, targets, mask, smoothing, strength):
    logits = [F.linear(each, weight, bias)[mask] for each in guesses]
    losses = [
        F.cross_entropy(each, targets[mask], reduction="sum", label_smoothing=smoothing)
        for each in logits
    ]
    p, q = (each.log_softmax(dim=-1) for each in logits)
    there = F.kl_div(q, p, reduction="sum", log_target=True)
    back = F.kl_div(p, q, reduction="sum", log_target=True)
    return sum(losses) / 2 + strength / 4 * (there + back), (there + back) / 2


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(("strength", "chunk"), [(0.0, 1), (5.0, 11 * 4), (2.0, 1 << 20)])
def test_loss_and_gradients_agree_with_torch(strength, chunk, smoothing, biased, monkeypatch):
    monkeypatch.setattr(consistent, "CHUNK_LOGITS", chunk)
    guesses, weight, bias, targets, mask = parts()
    bias = bias if biased else None
    inputs = [x for x in (*guesses, weight, bias) if x is not None]
    arguments = (guesses, weight, bias, targets, mask, smoothing, strength)
    loss, divergence = consistent_cross_entropy(*arguments)
    wanted_loss, wanted_divergence = theirs(*arguments)
    assert_close(loss, wanted_loss)
    assert_close(divergence, wanted_divergence)
    ours = torch.autograd.grad(0.37 * loss, inputs)
    for a, b in zip(ours, torch.autograd.grad(0.37 * wanted_loss, inputs), strict=True):
        assert_close(a, b)


def test_guesses_that_agree_diverge_by_nothing():
    (one, _), weight, bias, targets, mask = parts()
    _, divergence = consistent_cross_entropy((one, one), weight, bias, targets, mask, 0.1, 5.0)
    assert divergence == 0
