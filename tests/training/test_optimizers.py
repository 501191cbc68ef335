"""Gradients clipped, against torch's own way."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.training.optimizers import clip_gradients, gradient_norm


@pytest.mark.parametrize("longest", [1e-3, 1.0, 1e3])
def test_gradients_are_clipped_as_torch_does(longest):
    model = nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 2), nn.Linear(3, 3))  # the last is unused
    model[:2](torch.randn(4, 5)).square().sum().backward()
    other = copy.deepcopy(model)
    for ours, theirs in zip(model.parameters(), other.parameters(), strict=True):
        theirs.grad = None if ours.grad is None else ours.grad.clone()
    clip_gradients(model, longest, gradient_norm(model))
    nn.utils.clip_grad_norm_(other.parameters(), longest)
    for ours, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert (ours.grad is None) == (theirs.grad is None)
        if ours.grad is not None:
            assert_close(ours.grad, theirs.grad)
