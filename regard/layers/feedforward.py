"""The position-wise feed-forward network."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.layers.dropout import Dropout
from regard.products import Linear

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
    "tanh": torch.tanh,
}


class FeedForward(nn.Module):
    """y = W₂ drop(a(W₁ x + b₁)) + b₂

    Attention moves things between words; this works on each word by itself. `activation` is one of

    relu       a(x) = max(0, x)
    gelu       a(x) = x Φ(x) = x/2 (1 + erf(x/√2)), as in BERT
    gelu-tanh  a(x) = x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))), as in GPT-2
    silu       a(x) = x σ(x)
    tanh       a(x) = tanh(x)

    The two GELUs differ by up to 5 · 10⁻⁴, so weights trained with one should run with the same.

    Vaswani et al. (2017), section 3.3; Hendrycks & Gimpel (2016), section 2.
    """

    def __init__(
        self,
        model_size: int,
        hidden_size: int,
        activation: str = "relu",
        dropout: float = 0.0,
        output_size: int | None = None,  # None: the model's
    ):
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation ({activation!r}) must be one of {', '.join(ACTIVATIONS)}")
        self.expand = Linear(model_size, hidden_size)
        self.activation = activation
        self.dropout = Dropout(dropout)
        self.contract = Linear(hidden_size, output_size or model_size)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = ACTIVATIONS[self.activation](self.expand(inputs))  # (…, hidden)
        vectors: Tensor = self.contract(self.dropout(hidden))  # (…, output)
        return vectors

    def extra_repr(self) -> str:
        return f"activation={self.activation!r}"
