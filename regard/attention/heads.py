"""Multi-head attention: several attentions side by side, each over its share of the vectors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.attention import Attention
from regard.attention.cache import KeyValueCache
from regard.attention.masks import Mask
from regard.attention.positions import PositionBias, Rotary
from regard.attention.scores import ScaledDot, Score
from regard.attention.weighings import Weighing


class MultiHead(nn.Module):
    """head_i = Attention(Q Wᵢ^Q, K Wᵢ^K, V Wᵢ^V);  output = [head_1; …; head_h] W^O

    Each head may look somewhere else at once. Given queries alone it is self-attention, with one
    matrix product for all three projections. `key_value_heads` below `heads` lets groups of heads
    share keys and values. `position` is `Rotary`, `ALiBi` or `RelativeBias`, and is for
    self-attention: between two sequences there is no distance.

    Vaswani et al. (2017), section 3.2.2; groups: Ainslie et al. (2023), section 2.2.
    """

    def __init__(
        self,
        model_size: int,
        heads: int,
        *,
        key_size: int | None = None,
        value_size: int | None = None,
        head_size: int | None = None,
        key_value_heads: int | None = None,
        bias: bool = True,
        score: Score | None = None,
        weigh: Weighing | None = None,
        position: Rotary | PositionBias | None = None,
        dropout: float = 0.0,
        sides: tuple[str, str] | None = None,
    ):
        """key_size and value_size are what comes in; head_size is what one head works with."""
        super().__init__()
        self.heads = heads
        self.key_value_heads = heads if key_value_heads is None else key_value_heads
        self.head_size = _head_size(model_size, heads, head_size)
        if self.key_value_heads < 1 or heads % self.key_value_heads:
            raise ValueError(
                f"heads ({heads}) must be a multiple of key_value_heads ({key_value_heads}): "
                "each group shares one"
            )
        widths = [n * self.head_size for n in (heads, self.key_value_heads, self.key_value_heads)]
        key_size = model_size if key_size is None else key_size
        sizes = [model_size, key_size, key_size if value_size is None else value_size]
        for name, size in zip(("model_size", "key_size", "value_size"), sizes, strict=True):
            if size < 1:
                raise ValueError(f"{name} ({size}) must be 1 or more")
        same_size = sizes[0] == sizes[1] == sizes[2]
        projection = PackedProjection if same_size else SeparateProjections
        self.projection = projection(sizes, widths, bias)
        self.attention = Attention(ScaledDot() if score is None else score, weigh, dropout, sides)
        if position is not None and key_size != model_size:
            raise ValueError(
                f"position ({type(position).__name__}) needs queries and keys of one sequence, but "
                f"key_size ({key_size}) is not model_size ({model_size}): distances between two "
                "sequences mean nothing"
            )
        _check_position(position, heads, self.head_size)
        self.position = position
        self.output = nn.Linear(widths[0], model_size, bias=bias)

    def forward(
        self,
        queries: Tensor,
        keys: Tensor | None = None,
        values: Tensor | None = None,
        mask: Mask | Tensor | None = None,
        cache: KeyValueCache | None = None,
        carried: Any = None,
    ) -> Tensor:
        """queries (batch, query, model), keys (batch, key, …), values (batch, key, …)
        → (batch, query, model).

        Without keys the queries look at themselves; without values the keys are read. With a
        `position` the queries must be the last of the keys.
        """
        q, k, v = self.projection(queries, keys, values)
        if self.position is not None and keys is not None and keys is not queries:
            _check_one_sequence(self.position, queries, keys)
        q = self._split(q, self.heads)  # (batch, head, query, size)
        k, v = (self._split(x, self.key_value_heads) for x in (k, v))  # (batch, group, key, size)
        if isinstance(self.position, Rotary):
            end = k.shape[-2] + (0 if cache is None else cache.length)
            q, k = (self._rotate(self.position, x, end) for x in (q, k))
        if cache is not None:
            k, v = cache.append(k, v)
        k, v = (self._repeat_key_value_heads(x) for x in (k, v))  # (batch, head, key, size)
        bias = None
        if isinstance(self.position, PositionBias):
            bias = self.position(q.shape[-2], k.shape[-2], q.device)
        attended = self.attention(q, k, v, mask, carried, bias)
        return self.output(attended.context.transpose(-3, -2).flatten(-2))

    def _split(self, vectors: Tensor, heads: int) -> Tensor:
        return vectors.unflatten(-1, (heads, self.head_size)).transpose(-3, -2)

    def _rotate(self, rotary: Rotary, vectors: Tensor, end: int) -> Tensor:
        """The last of the vectors stands at `end` − 1, be they queries or keys."""
        positions = torch.arange(end - vectors.shape[-2], end, device=vectors.device)
        return rotary(vectors, positions)

    def _repeat_key_value_heads(self, vectors: Tensor) -> Tensor:
        group = self.heads // self.key_value_heads
        return vectors if group == 1 else vectors.repeat_interleave(group, dim=-3)


class PackedProjection(nn.Module):
    """Queries, keys and values from vectors of one size: one matrix, used whole or in part."""

    def __init__(self, sizes: list[int], widths: list[int], bias: bool):
        super().__init__()
        self.widths = widths
        self.weight = nn.Parameter(torch.empty(sum(widths), sizes[0]))
        self.bias = nn.Parameter(torch.zeros(sum(widths))) if bias else None
        nn.init.xavier_uniform_(self.weight)

    def forward(
        self, queries: Tensor, keys: Tensor | None, values: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        _check_input("queries", queries, self.weight.shape[1])
        if keys is None:
            if values is not None:
                raise ValueError(f"values {tuple(values.shape)} came without their keys")
            q, k, v = F.linear(queries, self.weight, self.bias).split(self.widths, dim=-1)
            return q, k, v
        values = keys if values is None else values
        _check_input("keys", keys, self.weight.shape[1])
        _check_input("values", values, self.weight.shape[1])
        weights = self.weight.split(self.widths)
        biases = (None, None, None) if self.bias is None else self.bias.split(self.widths)
        sources = (queries, keys, values)
        q, k, v = (F.linear(x, w, b) for x, w, b in zip(sources, weights, biases, strict=True))
        return q, k, v


class SeparateProjections(nn.Module):
    """Queries, keys and values from vectors of different sizes."""

    def __init__(self, sizes: list[int], widths: list[int], bias: bool):
        super().__init__()
        self.query, self.key, self.value = (
            nn.Linear(size, width, bias=bias) for size, width in zip(sizes, widths, strict=True)
        )
        for part in (self.query, self.key, self.value):
            nn.init.xavier_uniform_(part.weight)

    def forward(
        self, queries: Tensor, keys: Tensor | None, values: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        if keys is None:
            raise ValueError("keys are needed: this attention was built for keys of another size")
        values = keys if values is None else values
        _check_input("queries", queries, self.query.in_features)
        _check_input("keys", keys, self.key.in_features)
        _check_input("values", values, self.value.in_features)
        return self.query(queries), self.key(keys), self.value(values)


def _head_size(model_size: int, heads: int, head_size: int | None) -> int:
    if heads < 1:
        raise ValueError(f"heads ({heads}) must be 1 or more")
    if head_size is not None:
        if head_size < 1:
            raise ValueError(f"head_size ({head_size}) must be 1 or more")
        return head_size
    if model_size % heads:
        raise ValueError(
            f"model_size ({model_size}) must be a multiple of heads ({heads}): "
            "each head takes an equal share"
        )
    return model_size // heads


def _check_position(position: Rotary | PositionBias | None, heads: int, head_size: int) -> None:
    if isinstance(position, Rotary) and position.head_size != head_size:
        raise ValueError(
            f"position turns heads of size {position.head_size}, these have {head_size}"
        )
    if isinstance(position, PositionBias) and position.heads != heads:
        raise ValueError(f"position is made for {position.heads} heads, there are {heads}")


def _check_one_sequence(position: nn.Module, queries: Tensor, keys: Tensor) -> None:
    """Distances are counted back from the last key, beside which the last query stands. In another
    sequence it stands nowhere, and would read something else alone than among others."""
    before = keys.shape[-2] - queries.shape[-2]
    if before < 0 or not torch.equal(queries, keys[..., before:, :]):
        raise ValueError(
            f"position ({type(position).__name__}) needs queries and keys of one sequence, but "
            f"queries {tuple(queries.shape)} are not the last of keys {tuple(keys.shape)}: "
            "distances between two sequences mean nothing"
        )


def _check_input(name: str, tensor: Tensor, size: int) -> None:
    if tensor.dim() != 3 or tensor.shape[-1] != size:
        raise ValueError(f"{name} {tuple(tensor.shape)} must be (batch, position, {size})")
