"""A multi-layer perceptron over numbers: features of the inputs, and a linear reading of them.

h(x) = σ(V x + b),  f(x) = W h(x) + c

A linear model over features needs somebody who thinks of the features. The hidden units of a
network are features that are learned together with the weights that read them. In between lies the
hand-made network: somebody has cut the problem into parts, and each unit sees the inputs of its own
part alone; what it makes of them is learned all the same.

Rumelhart, Hinton & Williams (1986), "Learning representations by back-propagating errors".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.data.batches import Rows
from regard.models.checks import check_at_least, check_one_of
from regard.products import Linear

ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu, "sigmoid": torch.sigmoid}


@dataclass(frozen=True, kw_only=True)
class MLPConfig:
    """The defaults are the network of the lectures: one hidden layer of three units."""

    inputs: int
    outputs: int
    hidden_size: int = 3
    layers: int = 1  # hidden ones
    activation: str = "tanh"  # sigmoid, tanh, relu
    features: str = "learned"  # or "hand-made": each unit of the first layer sees one subproblem

    def __post_init__(self) -> None:
        check_at_least(1, self, "inputs", "outputs", "hidden_size", "layers")
        check_one_of(tuple(ACTIVATIONS), self, "activation")
        check_one_of(("learned", "hand-made"), self, "features")


class MLP(nn.Module):
    """Features of the inputs, layer upon layer, and what is wanted read from the last."""

    def __init__(self, config: MLPConfig):
        super().__init__()
        self.config = config
        sizes = [config.inputs] + [config.hidden_size] * config.layers
        self.layers = nn.ModuleList(PartialLinear(*pair) for pair in pairwise(sizes))
        if config.features == "hand-made":
            self.layers[0].register_buffer("sees", torch.ones(config.hidden_size, config.inputs))
        self.output = Linear(config.hidden_size, config.outputs)

    def forward(self, batch: Rows) -> Tensor:
        return self.output(self.hidden(batch.inputs)[-1])  # (batch, output)

    def hidden(self, inputs: Tensor) -> list[Tensor]:
        """What the units of each hidden layer say: (batch, hidden) each."""
        values = []
        for layer in self.layers:
            inputs = ACTIVATIONS[self.config.activation](layer(inputs))
            values.append(inputs)
        return values

    def divide(self, subproblems: Sequence[Sequence[int]]) -> None:
        """Tell a hand-made network which inputs belong together; a learned one need not know.

        Units take turns: with three subproblems the fourth sees the inputs of the first.
        """
        if self.config.features != "hand-made":
            return
        if not subproblems:
            raise ValueError("features ('hand-made'): which inputs belong together is not told")
        if self.config.hidden_size < len(subproblems):
            raise ValueError(
                f"hidden_size ({self.config.hidden_size}) must be at least {len(subproblems)}: "
                "each subproblem needs a unit"
            )
        first = self.layers[0]
        assert isinstance(first, PartialLinear) and first.sees is not None
        with torch.no_grad():
            first.sees.zero_()
            for unit in range(self.config.hidden_size):
                first.sees[unit, list(subproblems[unit % len(subproblems)])] = 1.0
            first.weight.mul_(first.sees)


class PartialLinear(nn.Linear):
    """y = (W ⊙ M) x + b: unit i sees input j where M_ij is 1; everywhere without M

    The gradient of what is not seen is 0, so that such a weight stays at 0 once it is.
    """

    sees: Tensor | None  # (output, input), 0 or 1

    def __init__(self, input_size: int, output_size: int):
        super().__init__(input_size, output_size)
        self.register_buffer("sees", None)

    def forward(self, inputs: Tensor) -> Tensor:
        weight = self.weight if self.sees is None else self.weight * self.sees
        return F.linear(inputs, weight, self.bias)
