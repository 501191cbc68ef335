"""Multi-head attention: several attentions side by side, each over its share of the vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeGuard, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from regard.attention.attention import Attention
from regard.attention.cache import KeyValueCache
from regard.attention.masks import Mask
from regard.attention.positions import PositionBias, Rotary
from regard.attention.prepared import PreparedMemory
from regard.attention.scores import ScaledDot, Score
from regard.attention.weighings import Weighing
from regard.products import Linear, linear


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
        self.widths = [n * self.head_size for n in (heads, *[self.key_value_heads] * 2)]
        key_size = model_size if key_size is None else key_size
        self.sizes = (model_size, key_size, key_size if value_size is None else value_size)
        for name, size in zip(("model_size", "key_size", "value_size"), self.sizes, strict=True):
            if size < 1:
                raise ValueError(f"{name} ({size}) must be 1 or more")
        self.packed = len(set(self.sizes)) == 1
        self.projection = _make_projection(self.sizes, self.widths, bias)
        self.attention = Attention(ScaledDot() if score is None else score, weigh, dropout, sides)
        if position is not None and key_size != model_size:
            raise ValueError(
                f"position ({type(position).__name__}) needs queries and keys of one sequence, but "
                f"key_size ({key_size}) is not model_size ({model_size}): distances between two "
                "sequences mean nothing"
            )
        _check_position(position, heads, self.head_size)
        self.position = position
        self.output = Linear(self.widths[0], model_size, bias=bias)

    def prepare(self, keys: Tensor, values: Tensor | None = None) -> PreparedMemory:
        """Project memory ahead of the first query, for decoders that come back to it.

        memory = attention.prepare(encoded)
        attention(query, memory, mask=mask)  # at every step
        """
        if self.position is not None:
            raise ValueError(
                f"position ({type(self.position).__name__}) needs queries and keys of one "
                "sequence, but what is prepared is memory of another: distances between two mean "
                "nothing"
            )
        k, v = (self._repeat_key_value_heads(x) for x in self._project_memory(keys, values))
        # As every step reads it, one head after the other.
        k, v = k.contiguous(), v.contiguous()
        return PreparedMemory(self.attention.prepare(k), v)

    def forward(
        self,
        queries: Tensor,
        keys: Tensor | PreparedMemory | None = None,
        values: Tensor | None = None,
        mask: Mask | Tensor | None = None,
        cache: KeyValueCache | None = None,
        carried: Any = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """queries (batch, query, model), keys (batch, key, …), values (batch, key, …)
        → (batch, query, model).

        Without keys the queries look at themselves; without values the keys are read. With a
        `position` the queries must be the last of the keys. `positions`, (key,) or (batch, key),
        say where the keys stand that `Rotary` turns; without them they follow one another.
        """
        if isinstance(keys, PreparedMemory):
            if values is not None or cache is not None:
                raise ValueError(
                    "prepared keys have their values, and take neither more nor a cache"
                )
            q = self._project_queries(queries)
            return self._merge(self.attention(q, keys.keys, keys.values, mask, carried).context)
        q, k, v = self._project(queries, keys, values)
        if positions is not None:
            _check_rotary_positions(self.position, positions, k.shape[-2])
        if self.position is not None and keys is not None and keys is not queries:
            _check_one_sequence(self.position, queries, keys)
        if isinstance(self.position, Rotary):
            if positions is None:
                before = 0 if cache is None else cache.length
                positions = torch.arange(before, before + k.shape[-2], device=k.device)
            q = self.position(q, positions[..., k.shape[-2] - q.shape[-2] :])
            k = self.position(k, positions)
        if cache is not None:
            k, v = cache.append(k, v)
        if self.key_value_heads < self.heads:
            k, v = (self._repeat_key_value_heads(x) for x in (k, v))  # (batch, head, key, size)
        bias = None
        if isinstance(self.position, PositionBias):
            bias = self.position(q.shape[-2], k.shape[-2], q.device)
        return self._merge(self.attention(q, k, v, mask, carried, bias).context)

    def _project(
        self, queries: Tensor, keys: Tensor | None, values: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """q (batch, head, query, size), k and v (batch, group, key, size)"""
        if keys is not None:
            return self._project_queries(queries), *self._project_memory(keys, values)
        if values is not None:
            raise ValueError(f"values {tuple(values.shape)} came without their keys")
        if not self.packed:
            raise ValueError("keys are needed: this attention was built for keys of another size")
        _check_input("queries", queries, self.sizes[0])
        projected = self._split(self.projection(queries))  # (batch, head + 2 groups, query, size)
        groups = self.key_value_heads
        q, k, v = projected.split_with_sizes((self.heads, groups, groups), dim=-3)
        return q, k, v

    def _project_queries(self, queries: Tensor) -> Tensor:
        """(batch, head, query, size)"""
        _check_input("queries", queries, self.sizes[0])
        return self._split(self._project_part(queries, 0))

    def _project_memory(self, keys: Tensor, values: Tensor | None) -> tuple[Tensor, Tensor]:
        """Each (batch, group, key, size)"""
        values = keys if values is None else values
        _check_input("keys", keys, self.sizes[1])
        _check_input("values", values, self.sizes[2])
        if self.packed and values is keys:
            projected = self._split(self._project_part(keys, 1, 2))  # (batch, 2 groups, key, size)
            k, v = projected.split_with_sizes((self.key_value_heads,) * 2, dim=-3)
            return k, v
        return self._split(self._project_part(keys, 1)), self._split(self._project_part(values, 2))

    def _project_part(self, vectors: Tensor, part: int, last: int | None = None) -> Tensor:
        """The projection to queries (0), keys (1) or values (2) alone, or from it to the `last`."""
        if isinstance(self.projection, SeparateProjections):
            return self.projection[part](vectors)
        end = (part if last is None else last) + 1
        rows = slice(sum(self.widths[:part]), sum(self.widths[:end]))
        if _is_plain_linear(self.projection):
            weight, bias = self.projection.weight, self.projection.bias
            return linear(vectors, weight[rows], None if bias is None else bias[rows])
        if isinstance(self.projection, Divisible):
            return self.projection.part(rows)(vectors)
        # Whatever took its place, quantised perhaps, has no matrix that could be cut.
        return self.projection(vectors)[..., rows]

    def _split(self, vectors: Tensor) -> Tensor:
        """(batch, position, head · size) → (batch, head, position, size)"""
        heads = vectors.shape[-1] // self.head_size
        return vectors.unflatten(-1, (heads, self.head_size)).transpose(-3, -2)

    def _merge(self, context: Tensor) -> Tensor:
        """(batch, head, query, size) → (batch, query, model)"""
        return self.output(context.transpose(-3, -2).flatten(-2))

    def _repeat_key_value_heads(self, vectors: Tensor) -> Tensor:
        group = self.heads // self.key_value_heads
        return vectors if group == 1 else vectors.repeat_interleave(group, dim=-3)


@runtime_checkable
class Divisible(Protocol):
    """A linear layer in another layout that can still give some of its outputs alone."""

    def part(self, rows: slice) -> nn.Module: ...


class SeparateProjections(nn.Module):
    """Queries, keys and values from vectors of different sizes."""

    def __init__(self, sizes: Sequence[int], widths: Sequence[int], bias: bool):
        super().__init__()
        self.query, self.key, self.value = (
            Linear(size, width, bias=bias) for size, width in zip(sizes, widths, strict=True)
        )
        for part in (self.query, self.key, self.value):
            nn.init.xavier_uniform_(part.weight)

    def __getitem__(self, part: int) -> nn.Module:
        return (self.query, self.key, self.value)[part]


def _make_projection(sizes: Sequence[int], widths: Sequence[int], bias: bool) -> nn.Module:
    """One matrix for queries, keys and values where they come from vectors of one size."""
    if len(set(sizes)) > 1:
        return SeparateProjections(sizes, widths, bias)
    # Its numbers are drawn once, here; torch's own draw would be thrown away.
    device = torch.get_default_device()
    packed = skip_init(Linear, sizes[0], sum(widths), bias=bias, device=device)
    nn.init.xavier_uniform_(packed.weight)
    if bias:
        nn.init.zeros_(packed.bias)
    return packed


def _is_plain_linear(module: nn.Module) -> TypeGuard[nn.Linear]:
    return type(module).forward in (Linear.forward, nn.Linear.forward)


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


def _check_rotary_positions(position: nn.Module | None, positions: Tensor, keys: int) -> None:
    if not isinstance(position, Rotary):
        kind = "none" if position is None else type(position).__name__
        raise ValueError(
            f"positions {tuple(positions.shape)} were given, but only Rotary turns by them, and "
            f"the position here is {kind}"
        )
    if positions.shape[-1] != keys:
        raise ValueError(f"positions {tuple(positions.shape)} must be one for each of {keys} keys")


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
