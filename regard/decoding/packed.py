"""A model laid out for decoding: the same modules, with matrices that a few rows read faster.

A step of a decoder multiplies each matrix by one vector, or by a handful. It has hardly anything to
compute and everything to read, so that the layout of a matrix decides:

few rows    oneDNN's own blocks
one row     the same blocks where MKL is slow, else (input, output), a row of it added at a time
many rows   as trained: a long prompt has something to compute

With `weights="int8"` matrices are rounded to 8 bits, one scale for each output, and read in a
quarter of the time; what is multiplied by them is rounded row by row on its way in. Prompts of more
than `MAX_FEW_ROWS` tokens, all rows together, are read with the matrices as trained.

Nothing of this is visible in a model: `pack` makes a copy that shares all parameters and swaps its
linear layers.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from regard.attention import is_watched
from regard.decoding.config import Weights
from regard.products import Linear, linear, onednn_linear, prefers_onednn

MAX_FEW_ROWS = 1024
"""Rows up to which the layout is felt: a tenth of the time at 130 and at 450 rows, half at 16."""
MIN_WEIGHTS = 1 << 14
"""Numbers of a matrix below which another layout costs more than it gains."""
BLOCKS_FOR_ROWS = 8
"""oneDNN's blocks for this many rows serve any few of them, and one. Its blocks for one row take
1.4 times as long for that row, and twice as long for more."""

M = TypeVar("M")


def pack(model: M, weights: Weights = "float32") -> M:
    """The model laid out for decoding: a copy with the same parameters, or itself.

    It stays itself while it trains, is watched or edited, or is not float32 on a CPU. The copy is
    made once, and again when weights have changed.
    """
    if not isinstance(model, nn.Module) or not _can_pack(model) or _is_overheard(model):
        return model
    version = _version(model)
    kept = _copies.setdefault(model, {})
    if weights not in kept or kept[weights][0] != version:
        kept[weights] = version, _copy(model, weights)
    packed: Any = kept[weights][1]
    return packed


_copies: WeakKeyDictionary[nn.Module, dict[str, tuple[Any, nn.Module]]] = WeakKeyDictionary()


def _can_pack(model: nn.Module) -> bool:
    return (
        not model.training
        and not torch.is_grad_enabled()
        and torch.backends.mkldnn.is_available()
        and all(
            type(p) is nn.Parameter and p.is_cpu and p.dtype == torch.float32
            for p in model.parameters()
        )
    )


def _is_overheard(model: nn.Module) -> bool:
    """Whether somebody waits for calls of these very modules."""
    return is_watched(model) or any(
        part._forward_hooks or part._forward_pre_hooks or getattr(part, "listeners", None)
        for part in model.modules()
    )


class _OptimizerSteps:
    """How many steps all optimizers have taken: fused ones write to parameters whose `_version`
    stays as it was."""

    def __init__(self) -> None:
        self.count = 0
        register_optimizer_step_post_hook(self._add_one)

    def _add_one(self, *_: Any) -> None:
        self.count += 1


_optimizer_steps = _OptimizerSteps()


def _version(model: nn.Module) -> tuple[int, ...]:
    """Another one whenever a parameter may have been written to or replaced."""
    versions = (0 if p.is_inference() else p._version for p in model.parameters())
    return _optimizer_steps.count, *(p.data_ptr() for p in model.parameters()), *versions


def _copy(model: nn.Module, weights: Weights) -> nn.Module:
    """The modules anew, the tensors shared, linear layers swapped."""
    shared: dict[int, Any] = {id(t): t for t in (*model.parameters(), *model.buffers())}
    packed = copy.deepcopy(model, shared)
    for parent, name, layer in list(_linears(packed)):
        kind = Int8Linear if weights == "int8" else PackedLinear
        setattr(parent, name, kind(layer.weight, layer.bias))
    return packed


def _linears(model: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Linear]]:
    for parent in model.modules():
        for name, child in parent.named_children():
            # A subclass that does something else with its matrix keeps doing it.
            plain = type(child).forward in (Linear.forward, nn.Linear.forward)
            if isinstance(child, nn.Linear) and plain and child.weight.numel() >= MIN_WEIGHTS:
                yield parent, name, child


class PackedLinear(nn.Module):
    """y = x Wᵀ + b by the layout that suits the number of rows, each made when first needed"""

    def __init__(self, weight: Tensor, bias: Tensor | None):
        super().__init__()
        self.weight, self.bias = weight, bias  # plain attributes of the copy: nobody trains it
        self.out_features, self.in_features = weight.shape
        self._parts: dict[tuple[int, int], PackedLinear] = {}
        self._across: Tensor | None = None
        self._blocks: Tensor | None = None

    def forward(self, inputs: Tensor) -> Tensor:
        rows = inputs.numel() // self.in_features
        if rows > MAX_FEW_ROWS or rows == 0:
            return linear(inputs, self.weight, self.bias)
        flat = inputs.reshape(rows, self.in_features)
        product = self._multiply_one(flat) if rows == 1 else self._multiply_few(flat)
        return product.view(*inputs.shape[:-1], self.out_features)

    def part(self, rows: slice) -> PackedLinear:
        """Some of the outputs alone, as the queries of a projection that also makes keys."""
        place = rows.start, rows.stop
        if place not in self._parts:
            bias = None if self.bias is None else self.bias[rows]
            self._parts[place] = type(self)(self.weight[rows], bias)
        return self._parts[place]

    def _multiply_one(self, inputs: Tensor) -> Tensor:
        if prefers_onednn():
            return self._multiply_few(inputs)
        if self._across is None:
            self._across = self.weight.mT.contiguous()
        if self.bias is None:
            return inputs @ self._across
        return torch.addmm(self.bias, inputs, self._across)

    def _multiply_few(self, inputs: Tensor) -> Tensor:
        if self._blocks is None:
            reorder = torch.ops.mkldnn._reorder_linear_weight
            self._blocks = reorder(self.weight.contiguous(), BLOCKS_FOR_ROWS)
        return onednn_linear(inputs, self._blocks, self.bias)


class Int8Linear(PackedLinear):
    """y = s_x s_w (round(x / s_x) · round(W / s_w)) + b, one s_w for each output

    Wu, Judd, Zhang, Isaev & Micikevicius (2020), "Integer quantization for deep learning
    inference", sections 3 and 4.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None):
        super().__init__(weight, bias)
        self._quantised: Any = None

    def _multiply_one(self, inputs: Tensor) -> Tensor:
        product = self._multiply(inputs)
        return product if self.bias is None else product.add_(self.bias)

    def _multiply_few(self, inputs: Tensor) -> Tensor:
        # One scale serves a whole call. Rows brought to one height have the same, so that what a
        # row gives hardly depends on the rows beside it.
        height = inputs.abs().amax(dim=-1, keepdim=True).clamp_(min=1e-30)
        product = self._multiply(inputs / height)
        if self.bias is None:
            return product.mul_(height)
        return torch.addcmul(self.bias, product, height)

    def _multiply(self, inputs: Tensor) -> Tensor:
        if self._quantised is None:
            self._quantised = quantise(self.weight)
        product: Tensor = torch.ops.quantized.linear_dynamic(inputs, self._quantised)
        return product


def quantise(weight: Tensor) -> Any:
    """A matrix in 8 bits with one scale for each output, as torch's quantised kernel reads it."""
    scales = weight.abs().amax(dim=1).clamp(min=1e-30).double() / 127
    zeros = torch.zeros(len(weight), dtype=torch.long)
    with warnings.catch_warnings():
        # Deprecated in favour of a package of its own; the kernel has no other way in as yet.
        warnings.simplefilter("ignore", UserWarning)
        rounded = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
    return torch.ops.quantized.linear_prepack(rounded, None)
