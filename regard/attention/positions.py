"""Position encodings: how attention, which is blind to order, is told it.

Two ways: add a position's vector to the word's
(`Sinusoidal`, `LearnedPositions`), or let the distance between query and key speak in the score
(`Rotary` turns both, `ALiBi` and `RelativeBias` add a number).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from regard.attention.precision import at_least_single


def sinusoids(
    positions: Tensor, size: int, dtype: torch.dtype | None = None, base: float = 10000.0
) -> Tensor:
    """PE(pos, 2i) = sin(pos / base^(2i/size)),  PE(pos, 2i + 1) = cos(pos / base^(2i/size))

    Like the digits of a counter: the first pair of dimensions turns fastest, the last slowest.

    Vaswani et al. (2017), section 3.5. positions (position,) → (position, size).
    """
    even = torch.arange(0, size, 2, device=positions.device, dtype=torch.float64)
    angles = positions.to(torch.float64).unsqueeze(-1) * base ** (-even / size)
    table = torch.stack([angles.sin(), angles.cos()], dim=-1)  # (position, size / 2, 2)
    return table.flatten(-2)[..., :size].to(dtype or torch.get_default_dtype())


class Sinusoidal(nn.Module):
    """x + PE: fixed waves of growing length, one pair of dimensions each. Any position exists.

    `table` begins with `longest` positions and grows when more are asked for.

    Vaswani et al. (2017), section 3.5.
    """

    table: Tensor

    def __init__(self, model_size: int, longest: int = 0):
        super().__init__()
        if model_size < 1:
            raise ValueError(f"model_size ({model_size}) must be 1 or more")
        self.model_size = model_size
        table = sinusoids(torch.arange(longest), model_size)  # (position, model)
        self.register_buffer("table", table, persistent=False)

    def forward(self, vectors: Tensor, start: int = 0, positions: Tensor | None = None) -> Tensor:
        """vectors (batch, position, size), the first of them standing at `start`, or each where
        `positions` say, (position,) or (batch, position)."""
        end = _end_position(vectors, start, self.model_size, positions)
        stale = self.table.dtype != vectors.dtype or self.table.device != vectors.device
        if stale or self.table.shape[0] < end:
            length = self.table.shape[0]
            grown = 2 * length if length < end else length
            longest = torch.arange(max(end, grown), device=vectors.device)
            self.table = sinusoids(longest, self.model_size, vectors.dtype)
        return vectors + self.table[slice(start, end) if positions is None else positions]


class LearnedPositions(nn.Module):
    """x + P[position]: a vector learned for each of `longest` positions.

    Gehring et al. (2017), section 3.1; the positions of BERT and GPT-2.
    """

    def __init__(self, longest: int, model_size: int):
        super().__init__()
        self.table = nn.Parameter(torch.empty(longest, model_size))
        nn.init.normal_(self.table, std=0.02)

    def forward(self, vectors: Tensor, start: int = 0, positions: Tensor | None = None) -> Tensor:
        """vectors (batch, position, size), the first of them standing at `start`, or each where
        `positions` say, (position,) or (batch, position)."""
        end = _end_position(vectors, start, self.table.shape[1], positions)
        if end > self.table.shape[0]:
            first = start if positions is None else int(positions.min())
            raise ValueError(
                f"positions {first} … {end - 1} were asked for, but this model knows "
                f"{self.table.shape[0]} (longest)"
            )
        return vectors + self.table[slice(start, end) if positions is None else positions]


def _end_position(vectors: Tensor, start: int, size: int, positions: Tensor | None) -> int:
    """One past the position of the last vector, or of the farthest."""
    if vectors.dim() < 2 or vectors.shape[-1] != size:
        raise ValueError(f"vectors {tuple(vectors.shape)} must be (…, position, {size})")
    if positions is not None:
        if start:
            raise ValueError(f"start ({start}) and positions were given: either says all")
        return _check_positions(positions, tuple(vectors.shape[:-1]))
    if start < 0:
        raise ValueError(f"start ({start}) must be 0 or more")
    return start + vectors.shape[-2]


def _check_positions(positions: Tensor, shape: tuple[int, ...]) -> int:
    """One past the farthest of these positions, which are for vectors (*shape, size)."""
    try:
        fits = torch.broadcast_shapes(positions.shape, shape) == torch.Size(shape)
    except RuntimeError:
        fits = False
    if not fits or positions.is_floating_point():
        raise ValueError(
            f"positions {positions.dtype} {tuple(positions.shape)} must be whole numbers, one for "
            f"each of the vectors {shape}"
        )
    if positions.numel() and int(positions.min()) < 0:
        raise ValueError(f"positions ({int(positions.min())} among them) must be 0 or more")
    return int(positions.max()) + 1 if positions.numel() else 0


class Rotary(nn.Module):
    """q′ = R(m) q,  k′ = R(n) k,  so that  q′ · k′ depends on n − m alone

    Each pair of dimensions is a point in the plane, turned by an angle that grows with the
    position. `interleaved` pairs neighbours (2i, 2i + 1) as in the paper; otherwise dimension i is
    paired with i + size / 2, as most published checkpoints have it.

    Su et al. (2021), section 3.2.2, equations 14 and 15.
    """

    def __init__(self, head_size: int, base: float = 10000.0, interleaved: bool = False):
        super().__init__()
        if head_size % 2:
            raise ValueError(f"head_size ({head_size}) must be even: rotary turns pairs")
        self.head_size, self.base, self.interleaved = head_size, base, interleaved

    def forward(self, vectors: Tensor, positions: Tensor) -> Tensor:
        """vectors (batch, …, position, size), positions (position,), or (batch, position) for rows
        that do not all begin at one place."""
        while 1 < positions.dim() < vectors.dim() - 1:
            positions = positions.unsqueeze(1)  # (batch, 1, position), for all heads
        # In double precision whatever the vectors are: an angle of 1,000 has no digits to spare.
        even = torch.arange(0, self.head_size, 2, device=positions.device, dtype=torch.float64)
        frequencies = self.base ** (-even / self.head_size)
        angles = positions.to(torch.float64).unsqueeze(-1) * frequencies
        cos, sin = angles.cos().to(vectors.dtype), angles.sin().to(vectors.dtype)
        if self.interleaved:
            x, y = vectors[..., 0::2], vectors[..., 1::2]  # (…, position, size / 2)
            return torch.stack([x * cos - y * sin, x * sin + y * cos], dim=-1).flatten(-2)
        x, y = vectors.chunk(2, dim=-1)
        return torch.cat([x * cos - y * sin, x * sin + y * cos], dim=-1)


@dataclass(frozen=True)
class Bias:
    """Numbers added to the scores, computed for the rows asked for: `by_distance[head, distance]`.

    `query_positions` holds the key position at which each row stands.
    """

    by_distance: Tensor  # (head, 2 · longest + 1): key minus query, from −longest to +longest
    query_positions: Tensor  # (query,)
    keys: int

    def table(self) -> Tensor:
        """(head, query, key)"""
        longest = self.by_distance.shape[-1] // 2
        columns = torch.arange(self.keys, device=self.query_positions.device)
        distance = columns - self.query_positions.unsqueeze(-1)  # (query, key)
        return self.by_distance[:, distance + longest]

    def rows(self, rows: Tensor) -> Bias:
        return replace(self, query_positions=self.query_positions[rows])

    def heads(self, heads: Tensor) -> Bias:
        return replace(self, by_distance=self.by_distance[heads])

    def detach(self) -> Bias:
        return replace(self, by_distance=self.by_distance.detach())


class PositionBias(nn.Module):
    """A number for each head and each distance, added to the score."""

    heads: int

    def by_distance(self, distances: Tensor) -> Tensor:
        """distances (distance,), key minus query → (head, distance)"""
        raise NotImplementedError

    def forward(self, queries: int, keys: int, device: torch.device | str | None = None) -> Bias:
        """For that many queries and keys, the last query standing beside the last key."""
        longest = max(queries, keys)
        distances = torch.arange(-longest, longest + 1, device=device)
        query_positions = torch.arange(keys - queries, keys, device=device)
        return Bias(self.by_distance(distances), query_positions, keys)


class ALiBi(PositionBias):
    """score − m · |distance|, a slope m for each head

    For a power of two of heads the slopes are 2^(−8/heads), 2^(−16/heads), …; other counts fill in
    every second slope of the next power, as published.

    Press, Smith & Lewis (2022), section 3.
    """

    slopes: Tensor

    def __init__(self, heads: int):
        super().__init__()
        if heads < 1:
            raise ValueError(f"heads ({heads}) must be 1 or more")
        self.heads = heads
        power = 2 ** math.floor(math.log2(heads))
        slopes = [2.0 ** (-8.0 * (i + 1) / power) for i in range(power)]
        slopes += [2.0 ** (-4.0 * (2 * i + 1) / power) for i in range(heads - power)]
        self.register_buffer("slopes", torch.tensor(slopes), persistent=False)

    def by_distance(self, distances: Tensor) -> Tensor:
        # In half precision far distances would fall together.
        return -at_least_single(self.slopes).unsqueeze(-1) * distances.abs()


class RelativeBias(PositionBias):
    """score + b[head, bucket(distance)]

    Near distances have a bucket each, far ones share buckets that grow logarithmically up to
    `farthest`; everything beyond falls in the last. `bidirectional` gives half the buckets to keys
    that come after the query; a decoder needs none for those.

    Raffel et al. (2020), section 2.1.
    """

    def __init__(
        self, heads: int, buckets: int = 32, farthest: int = 128, bidirectional: bool = True
    ):
        super().__init__()
        if buckets < 4 or buckets % 2:
            raise ValueError(f"buckets ({buckets}) must be an even number, 4 or more")
        if farthest <= buckets // 2:
            raise ValueError(f"farthest ({farthest}) must be above half of buckets ({buckets})")
        self.heads = heads
        self.buckets, self.farthest, self.bidirectional = buckets, farthest, bidirectional
        self.table = nn.Parameter(torch.empty(buckets, heads))
        nn.init.normal_(self.table, std=0.02)

    def bucket(self, distances: Tensor) -> Tensor:
        """The bucket of each distance, key minus query."""
        buckets = self.buckets
        if self.bidirectional:
            buckets //= 2
            side = (distances > 0).long() * buckets
            away = distances.abs()
        else:
            side = torch.zeros_like(distances)
            away = (-distances).clamp(min=0)
        near = buckets // 2  # distances below this have a bucket of their own
        growth = (away.clamp(min=1).float() / near).log() / math.log(self.farthest / near)
        far = near + (growth * (buckets - near)).long()
        return side + torch.where(away < near, away, far.clamp(max=buckets - 1))

    def by_distance(self, distances: Tensor) -> Tensor:
        return self.table[self.bucket(distances)].T  # (head, distance)
