"""The residual connection: f(x) = x + g(x)

A deep network can always stand in for a shallow one, if its upper layers are identities. A plain
layer has to learn to be one; a residual layer is one as soon as g = 0.

He et al. (2016), "Deep residual learning for image recognition", section 3.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from regard.layers import FeedForward, Residual
from regard.lectures.catalog import TITLES
from regard.lectures.formatting import decimals, double, max_difference, to_list
from regard.lectures.lesson import SEQUENCES, Lesson, step
from regard.lectures.seeding import fixed_seed
from regard.looking import Curves

SIZE, SHALLOW, DEEP, SEED = 8, 2, 50, 14
X = double([[1.0, -2.0, 3.0, 0.5, -1.0, 0.0, 2.0, -0.5]])


def random_block() -> FeedForward:
    """g with random weights."""
    return FeedForward(SIZE, 2 * SIZE).double()


def zero_block() -> FeedForward:
    """g = 0: the output layer is zero, whatever the hidden layer computes."""
    block = random_block()
    nn.init.zeros_(block.contract.weight)
    nn.init.zeros_(block.contract.bias)
    return block


def residual(g: FeedForward) -> Residual:
    """x + g(norm(x))"""
    return Residual(g, SIZE, norm="pre").double()


def gradients(layers: Sequence[nn.Module]) -> list[float]:
    """‖∂loss/∂x‖ behind every layer, for a loss behind the last, as a share of what it is there."""
    states = [X.clone().requires_grad_()]
    for layer in layers:
        states.append(layer(states[-1]))
    each = torch.autograd.grad(states[-1].sum(), states)
    sizes = torch.stack([gradient.norm() for gradient in each])
    shares: list[float] = (sizes / sizes[-1]).tolist()
    return shares


def lesson() -> Lesson:
    with fixed_seed(SEED):
        shallow = nn.Sequential(*(residual(random_block()) for _ in range(SHALLOW)))
        empty = [residual(zero_block()) for _ in range(DEEP - SHALLOW)]
        deep = nn.Sequential(*shallow, *empty)
        plain_layer = zero_block()
        with_residual = gradients([residual(random_block()) for _ in range(DEEP)])
        without_residual = gradients([random_block() for _ in range(DEEP)])
    with torch.no_grad():
        same, few, many, lost = empty[0](X), shallow(X), deep(X), plain_layer(X)
    return Lesson(
        name="residual",
        title=TITLES["residual"],
        source=SEQUENCES,
        steps=(
            step(
                "A residual block learns only what to change: f(x) = x + g(x). If g says nothing, "
                "the block is the identity.",
                f"x        = {decimals(X[0], 1)}",
                f"x + g(x) = {decimals(same[0], 1)}",
            ),
            step(
                "A plain layer with g = 0 is no identity: it has lost everything.",
                f"g(x)     = {decimals(lost[0], 1)}",
            ),
            step(
                f"So {SHALLOW} layers with something to say, and {DEEP - SHALLOW} with nothing on "
                f"top, are a network of {DEEP} layers that equals the shallow one.",
                f"{SHALLOW:>2} layers: {decimals(few[0])}",
                f"{DEEP:>2} layers: {decimals(many[0])}",
                f"largest difference: {max_difference(few, many):g}",
            ),
            step(
                f"It also leaves the gradient a road. Through {DEEP} layers with random weights, "
                "this share of it arrives at the bottom.",
                f"with the residual: {with_residual[0]:.2f}   without: {without_residual[0]:.1e}",
            ),
        ),
        numbers={
            "x": to_list(X[0]),
            "identity": to_list(same[0]),
            "plain_layer": to_list(lost[0]),
            "layers": {"shallow": SHALLOW, "deep": DEEP},
            "shallow": to_list(few[0]),
            "deep": to_list(many[0]),
            "largest_difference": max_difference(few, many),
            "gradient": {"residual": with_residual, "plain": without_residual},
        },
        curves=(
            Curves(
                title="The gradient below each layer",
                x_label="layer, from the bottom",
                y_label="share of the gradient at the top",
                x=tuple(float(n) for n in range(DEEP + 1)),
                series={"residual": tuple(with_residual), "plain": tuple(without_residual)},
                log=True,
            ),
        ),
    )
