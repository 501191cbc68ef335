"""Matrix products by the library that is fastest for them on this processor.

torch hands float32 products to MKL. On processors of other makers than Intel, MKL leaves their
widest registers alone; oneDNN, which torch carries too and uses for LSTMs and half precision, does
not. On an AMD EPYC with AVX-512 it makes 2.2 times as many products a second, forward and backward.
`linear` takes it there, for products large enough to be worth the call, and torch's own elsewhere.

Which one is taken follows from the processor and from sizes, never from a clock: a run that is
resumed makes the same products the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

MIN_PRODUCTS = 1 << 21
"""Multiplications below which the call of a Python function costs more than it gains."""

COARSE_ROWS, GRAIN, COARSE_GRAIN = 256, 8, 32
"""oneDNN compiles a kernel for every number of rows it meets, which takes half a millisecond, and
keeps a thousand of them. Batches of sentences seldom have as many words twice, so the rows are made
a multiple of a grain, beyond `COARSE_ROWS` of a coarser one."""


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b, as torch's `F.linear`: (…, input), (output, input), (output,) → (…, output)"""
    if not takes_onednn(inputs, weight):
        return F.linear(inputs, weight, bias)
    rows = inputs.reshape(-1, inputs.shape[-1])
    if torch.is_grad_enabled() and (inputs.requires_grad or weight.requires_grad):
        product: Tensor = _Linear.apply(rows, weight, bias)  # type: ignore[no-untyped-call]
    else:
        product = _multiply(rows, weight, bias)
    return product.view(*inputs.shape[:-1], weight.shape[0])


def matmul(one: Tensor, other: Tensor) -> Tensor:
    """A B of two matrices, as torch's `one @ other`."""
    return linear(one, other.mT)


def add_linear(total: Tensor, inputs: Tensor, weight: Tensor) -> Tensor:
    """total + x Wᵀ of (row, output), (row, input) and (output, input), without gradients"""
    if not takes_onednn(inputs, weight):
        return torch.addmm(total, inputs, weight.mT)
    return _multiply(inputs, weight, None).add_(total)


class Linear(nn.Linear):
    """y = x Wᵀ + b, torch's own layer by `linear`"""

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)


class _Linear(torch.autograd.Function):
    """The product and its two gradients, which are products of the same kind."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        return _multiply(inputs, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        inputs, weight = ctx.saved_tensors
        needs_inputs, needs_weight, needs_bias = ctx.needs_input_grad
        at_inputs = matmul(gradient, weight) if needs_inputs else None
        at_weight = weight_gradient(gradient, inputs) if needs_weight else None
        return at_inputs, at_weight, gradient.sum(dim=0) if needs_bias else None


def weight_gradient(gradient: Tensor, inputs: Tensor) -> Tensor:
    """Σ over rows of gradient ⊗ input: (row, output), (row, input) → (output, input)"""
    # oneDNN is quickest with the larger matrix as its second: x Gᵀ for a wide output layer.
    if gradient.shape[1] > inputs.shape[1]:
        return _sum_products(inputs, gradient).mT
    return _sum_products(gradient, inputs)


def _sum_products(one: Tensor, other: Tensor) -> Tensor:
    """Aᵀ B: (row, a), (row, b) → (a, b)"""
    rows = len(one) - len(one) % COARSE_GRAIN
    if not takes_onednn(one[:rows].mT, other[:rows].mT):
        return one.mT @ other
    product = matmul(one[:rows].mT, other[:rows])
    return product if rows == len(one) else product + one[rows:].mT @ other[rows:]


def takes_onednn(inputs: Tensor, weight: Tensor) -> bool:
    """Whether a product goes to oneDNN: plain float32 matrices, many multiplications."""
    return (
        prefers_onednn()
        and not _torch_alone.get()
        and inputs.numel() * weight.shape[0] >= MIN_PRODUCTS
        and type(inputs) in (Tensor, nn.Parameter)
        and type(weight) in (Tensor, nn.Parameter)
        and inputs.dtype == weight.dtype == torch.float32
        and inputs.is_cpu
        and weight.is_cpu
        and inputs.shape[-1] == weight.shape[-1]  # else torch's own error is the clearer one
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cpu")
    )


def _multiply(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x Wᵀ + b of (row, input) by a kernel that is likely to be there already."""
    # For a slice of a matrix oneDNN has a reference kernel alone, a thousand times as slow.
    weight = weight if weight.is_contiguous() or weight.mT.is_contiguous() else weight.contiguous()
    rows = len(inputs)
    spare = -rows % (GRAIN if rows <= COARSE_ROWS else COARSE_GRAIN)
    if spare:
        inputs = F.pad(inputs, (0, 0, 0, spare))
    return onednn_linear(inputs, weight, bias)[:rows]


def onednn_linear(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x Wᵀ + b of (row, input) by oneDNN; the weight may be laid out by `pack` beforehand, and must
    else be whole or turned, no slice."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, "none", [], "")
    return product


_torch_alone: ContextVar[bool] = ContextVar("regard_torch_products", default=False)


@contextmanager
def use_torch_products() -> Iterator[None]:
    """Within the `with`, this thread or task has torch's own products, to the last digit.

    Another order of adding up is as right, but not the same: logits of 40 differ by 2 · 10⁻⁵.
    """
    before = _torch_alone.set(True)
    try:
        yield
    finally:
        _torch_alone.reset(before)


@cache
def prefers_onednn() -> bool:
    """Whether this processor's widest registers are left alone by MKL."""
    return (
        torch.backends.mkldnn.is_available()
        and torch.backends.cpu.get_cpu_capability() == "AVX512"
        and not _made_by_intel()
    )


def _made_by_intel() -> bool:
    try:
        return "GenuineIntel" in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux: who made it is not known, and torch's own choice is taken
        return True
