"""Matrix products by the faster of the two libraries that torch brings along for CPUs.

torch multiplies float32 matrices with MKL, which on AMD processors leaves the AVX-512 units alone;
oneDNN, which it takes for convolutions, does not: 230 GFLOP/s a thread against 110 on a Zen 5.
Elsewhere the two are level, and torch's own way is taken. This file imports nothing of ours.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

MIN_OPERATIONS = 1 << 23
"""Multiplications and additions below which oneDNN's 10 µs to get going cost what it saves."""

COARSE_ROWS, GRAIN, COARSE_GRAIN = 256, 8, 32
"""oneDNN compiles a kernel for every number of rows it meets, which takes half a millisecond, and
keeps a thousand. So the rows are made a multiple of a grain, beyond so many rows of a coarser."""


def _prefers_onednn() -> bool:
    """A property of the machine, not a race at run time: the same run must give the same bits."""
    machine: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    amd = str(machine.get("cpu_name", "")).startswith("AMD")
    wide = amd and bool(machine.get("avx512_f", False))
    return wide and torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, _KERNEL)


_KERNEL = "_linear_pointwise"
PREFERS_ONEDNN = _prefers_onednn()


class Linear(nn.Linear):
    """y = W x + b: `nn.Linear`, and its products by `linear`"""

    def forward(self, inputs: Tensor) -> Tensor:
        return linear(inputs, self.weight, self.bias)


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """W x + b, with gradients: (…, in), (out, in), (out,) → (…, out), as `F.linear`"""
    if not suits_onednn(inputs, weight):
        return F.linear(inputs, weight, bias)
    if torch.is_grad_enabled():
        return _Linear.apply(inputs, weight, bias)  # type: ignore[no-untyped-call]
    return _multiply(inputs, weight, bias)


def add_linear(total: Tensor, inputs: Tensor, weight: Tensor) -> Tensor:
    """total + W x, without gradients: (row, out), (row, in), (out, in) → (row, out)"""
    if not suits_onednn(inputs, weight):
        return torch.addmm(total, inputs, weight.T)
    return _multiply(inputs, weight, None).add_(total)


def weight_gradient(gradient: Tensor, inputs: Tensor) -> Tensor:
    """Σ over rows of gradient ⊗ input: (row, out), (row, in) → (out, in)"""
    # oneDNN copies what stands on the left and is turned: better the smaller of the two.
    if gradient.shape[1] > inputs.shape[1]:
        return _sum_products(inputs, gradient).T
    return _sum_products(gradient, inputs)


def _sum_products(left: Tensor, right: Tensor) -> Tensor:
    """leftᵀ right: (row, a), (row, b) → (a, b)"""
    rows = len(left) - len(left) % COARSE_GRAIN
    if not suits_onednn(left[:rows].T, right[:rows].T):
        return left.T @ right
    product = linear(left[:rows].T, right[:rows].T)
    return product if rows == len(left) else product + left[rows:].T @ right[rows:]


def suits_onednn(inputs: Tensor, weight: Tensor) -> bool:
    """Whether oneDNN takes their product, and not torch's own way."""
    return (
        PREFERS_ONEDNN
        and 2 * inputs.numel() * weight.shape[0] >= MIN_OPERATIONS
        and not torch.compiler.is_compiling()
        and inputs.is_cpu
        and inputs.dtype == weight.dtype == torch.float32
        # DTensor and its like answer F.linear in their own way.
        and type(inputs) in _PLAIN
        and type(weight) in _PLAIN
        and inputs.dim() > 1
        and weight.shape[1] == inputs.shape[-1]
        and not torch.is_autocast_enabled("cpu")
    )


_PLAIN = (Tensor, nn.Parameter)


def _multiply(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    kernel, weight = torch.ops.mkldnn._linear_pointwise, _densify(weight)
    rows = inputs.shape[:-1].numel()
    spare = -rows % (GRAIN if rows <= COARSE_ROWS else COARSE_GRAIN)
    padded = inputs if spare == 0 else F.pad(inputs.reshape(rows, -1), (0, 0, 0, spare))
    product: Tensor = kernel(padded, weight, bias, "none", [], "")
    return product if spare == 0 else product[:rows].view(*inputs.shape[:-1], -1)


def _densify(weight: Tensor) -> Tensor:
    """For a slice of a matrix oneDNN has a reference kernel alone, a thousand times as slow."""
    dense = weight.is_contiguous() or weight.T.is_contiguous()
    return weight if dense else weight.contiguous()


class _Linear(torch.autograd.Function):
    """oneDNN's product has no gradient of its own in torch."""

    generate_vmap_rule = True

    @staticmethod
    def forward(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return _multiply(inputs, weight, bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight = ctx.saved_tensors
        needs_inputs, needs_weight, needs_bias = ctx.needs_input_grad
        gradient = gradients[0]
        rows = gradient.flatten(0, -2)  # (row, out)
        return (
            linear(gradient, weight.T) if needs_inputs else None,
            weight_gradient(rows, inputs.flatten(0, -2)) if needs_weight else None,
            rows.sum(dim=0) if needs_bias else None,
        )
