"""Layer norm, and the residual connection it stands before or behind."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.layers.dropout import Dropout


class LayerNorm(nn.Module):
    """y = (x − μ) / √(σ² + ε) ⊙ gain + bias, with μ and σ² over the features of one word

    Whatever its neighbours and its batch do, a word's vector has mean 0 and variance 1. With
    `elementwise_affine=False` there is no gain and no bias. σ² divides by the number of features,
    and ε stands inside the root, so that a constant vector gives zeros.

    Ba, Kiros & Hinton (2016), section 3. Weights want the ε they were trained with: BERT's is
    10⁻¹², GPT-2's 10⁻⁵.
    """

    def __init__(self, size: int, eps: float = 1e-5, elementwise_affine: bool = True):
        super().__init__()
        if size < 1:
            raise ValueError(f"size ({size}) must be at least 1")
        self.size, self.eps = size, eps
        self.weight = nn.Parameter(torch.ones(size)) if elementwise_affine else None
        self.bias = nn.Parameter(torch.zeros(size)) if elementwise_affine else None

    def forward(self, inputs: Tensor) -> Tensor:
        if inputs.shape[-1] != self.size:
            raise ValueError(f"inputs {tuple(inputs.shape)} must end in size {self.size}")
        return F.layer_norm(inputs, (self.size,), self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.size}, eps={self.eps}"


class Residual(nn.Module):
    """pre:  y = x + drop(block(norm(x)))
    post: y = norm(x + drop(block(x)))

    A block only has to say what to change. With one whose output is zero, pre is the identity: a
    deep stack can always be the shallow one. Post is the original and wants a warm-up; pre leaves a
    clear road from end to end, trains without one, and wants a last norm behind the stack.

    He et al. (2016); post: Vaswani et al. (2017), section 3.1; pre: Xiong et al. (2020), section 3.
    """

    def __init__(
        self,
        block: Callable[..., Tensor],
        model_size: int,
        norm: str = "pre",
        dropout: float = 0.0,
        eps: float = 1e-5,
    ):
        super().__init__()
        if norm not in ("pre", "post"):
            raise ValueError(f"norm ({norm!r}) must be pre or post")
        self.block = block
        self.norm_placement = norm
        self.norm = LayerNorm(model_size, eps)
        self.dropout = Dropout(dropout)

    def forward(self, inputs: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """(…, model) → (…, model); other arguments, such as mask= and cache=, go to the block."""

        def block(vectors: Tensor) -> Tensor:
            return self.block(vectors, *args, **kwargs)

        return add_residual(inputs, block, self.norm, self.dropout, self.norm_placement)

    def extra_repr(self) -> str:
        return f"norm={self.norm_placement!r}"


def add_residual(
    inputs: Tensor,
    block: Callable[[Tensor], Tensor],
    norm: Callable[[Tensor], Tensor],
    dropout: Callable[[Tensor], Tensor],
    placement: str = "pre",
) -> Tensor:
    """pre:  y = x + drop(block(norm(x)))
    post: y = norm(x + drop(block(x)))

    What `Residual` does, for a model that keeps block, norm and dropout under names of its own:
    checkpoints and attention paths know its modules by them.
    """
    if placement == "pre":
        return inputs + dropout(block(norm(inputs)))
    return norm(inputs + dropout(block(inputs)))
