"""Scores: how well a key answers a query, one class for each published function.

Dot, scaled dot, general and cosine are inner products once queries and keys are transformed, so
all four run on the fused kernel. `prepare` transforms keys once, for decoders that come back to the
same memory at every step.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from regard.attention.additive import key_exponentials
from regard.attention.comparisons import Comparison, InnerProduct, Table, TanhSum
from regard.attention.precision import at_least_single
from regard.attention.prepared import AdditiveKeys, Prepared
from regard.products import Linear


class Score(nn.Module):
    """Compares queries with keys.

    A score of your own gives `transform_queries` and `transform_keys` if an inner product is the
    score, else a `compare` that returns any `Comparison`.
    """

    def transform_queries(self, queries: Tensor) -> Tensor:
        return queries

    def transform_keys(self, keys: Tensor) -> Tensor:
        return keys

    def scale(self, size: int) -> float:
        """What the inner product of vectors of this size is multiplied by."""
        return 1.0

    def prepare(self, keys: Tensor) -> Prepared:
        return Prepared(self.transform_keys(keys))

    def compare(self, queries: Tensor, keys: Prepared) -> Comparison:
        q = _snapshot(self.transform_queries(queries))  # (batch, …, query, size)
        k = _snapshot(keys.keys)  # (batch, …, key, size)
        if q.shape[-1] != k.shape[-1]:
            raise ValueError(
                f"{type(self).__name__} needs queries and keys of one size, got queries "
                f"{tuple(q.shape)} and keys {tuple(k.shape)}"
            )
        if q.dtype != k.dtype:  # autocast projects one and leaves the other
            dtype = torch.promote_types(q.dtype, k.dtype)
            q, k = q.to(dtype), k.to(dtype)
        return InnerProduct(q, k, self.scale(q.shape[-1]))

    def forward(self, queries: Tensor, keys: Tensor | Prepared) -> Comparison:
        return self.compare(queries, keys if isinstance(keys, Prepared) else self.prepare(keys))


class Dot(Score):
    """score(q, k) = q · k

    Luong, Pham & Manning (2015), section 3.1, equation 8.
    """


class ScaledDot(Score):
    """score(q, k) = (q · k) / √size, or (q · k) · factor with a `factor` of its own

    The sum of `size` products of unit variance has variance `size`; the root brings it back to one,
    so that the softmax starts out soft.

    Vaswani et al. (2017), section 3.2.1, equation 1.
    """

    def __init__(self, factor: float | None = None):
        super().__init__()
        self.factor = factor

    def scale(self, size: int) -> float:
        return 1.0 / math.sqrt(max(size, 1)) if self.factor is None else self.factor


class General(Score):
    """score(q, k) = qᵀ W k

    A learned matrix stands between the two, which also lets their sizes differ.

    Luong, Pham & Manning (2015), section 3.1, equation 8.
    """

    def __init__(self, query_size: int, key_size: int):
        super().__init__()
        self.matrix = Linear(query_size, key_size, bias=False)

    def transform_queries(self, queries: Tensor) -> Tensor:
        _check_size("queries", queries, self.matrix.in_features)
        return self.matrix(queries)  # (batch, …, query, key size)


class Cosine(Score):
    """score(q, k) = β · (q · k) / (‖q‖ ‖k‖)

    Only the direction of a key counts; the strength β decides how sharply, and is learned. With
    strength None it is 1 for good, for weighings that are told their own. A zero vector has no
    direction: it scores 0 and passes no gradient.

    Graves, Wayne & Danihelka (2014), section 3.3.1, equations 5 and 6.
    """

    def __init__(self, strength: float | None = 1.0):
        super().__init__()
        given = None if strength is None else nn.Parameter(torch.tensor(float(strength)))
        self.strength: nn.Parameter | None = given

    def transform_queries(self, queries: Tensor) -> Tensor:
        directions = _normalise(queries)
        return directions if self.strength is None else self.strength * directions

    def transform_keys(self, keys: Tensor) -> Tensor:
        return _normalise(keys)


class Additive(Score):
    """score(q, k) = vᵀ tanh(W q + U k)

    A small network with one hidden layer judges each pair. W q and U k are computed once for each
    query and key; only the sum, the tanh and the product with v happen pair by pair, in blocks.
    Luong's *concat*, vᵀ tanh(W [q; k]), is the same function with his W cut into [W U].

    Bahdanau, Cho & Bengio (2015), section 3.1 and appendix A.1.2; Luong, Pham & Manning (2015),
    section 3.1, equation 8.
    """

    def __init__(self, query_size: int, key_size: int, hidden_size: int, bias: bool = False):
        super().__init__()
        if hidden_size < 1:
            raise ValueError(f"hidden_size ({hidden_size}) must be 1 or more")
        self.query = Linear(query_size, hidden_size, bias=bias)
        self.key = Linear(key_size, hidden_size, bias=False)
        self.direction = nn.Parameter(torch.empty(hidden_size))
        bound = 1.0 / math.sqrt(hidden_size)
        nn.init.uniform_(self.direction, -bound, bound)

    @classmethod
    def concat(cls, matrix: Tensor, direction: Tensor, query_size: int) -> Additive:
        """Luong's form, from his W (hidden, query size + key size) and v (hidden,)."""
        hidden_size, joint_size = matrix.shape
        score = cls(query_size, joint_size - query_size, hidden_size)
        with torch.no_grad():
            score.query.weight.copy_(matrix[:, :query_size])
            score.key.weight.copy_(matrix[:, query_size:])
            score.direction.copy_(direction)
        return score

    def transform_queries(self, queries: Tensor) -> Tensor:
        _check_size("queries", queries, self.query.in_features)
        return self.query(queries)  # (batch, …, query, hidden)

    def transform_keys(self, keys: Tensor) -> Tensor:
        _check_size("keys", keys, self.key.in_features)
        return self.key(keys)  # (batch, …, key, hidden)

    def prepare(self, keys: Tensor) -> AdditiveKeys:
        transformed = self.transform_keys(keys)
        return AdditiveKeys(transformed, key_exponentials(transformed))

    def compare(self, queries: Tensor, keys: Prepared) -> Comparison:
        # A clone, since an Attended outlives optimizer steps and must not see v change.
        direction = self.direction.clone()
        exponentials = keys.exponentials if isinstance(keys, AdditiveKeys) else None
        transformed = self.transform_queries(queries)
        return TanhSum(transformed, keys.keys, exponentials, direction=direction)


class Location(Score):
    """score(q, position) = (W q)ₚₒₛᵢₜᵢₒₙ

    The query alone says where to look, whatever stands there.

    Luong, Pham & Manning (2015), section 3.1, equation 9.
    """

    def __init__(self, query_size: int, longest: int):
        super().__init__()
        self.places = Linear(query_size, longest, bias=False)

    def compare(self, queries: Tensor, keys: Prepared) -> Comparison:
        _check_size("queries", queries, self.places.in_features)
        key_count, longest = keys.keys.shape[-2], self.places.out_features
        if key_count > longest:
            raise ValueError(
                f"Location knows {longest} positions (longest), but there are {key_count} keys"
            )
        return Table(self.places(queries)[..., :key_count])  # (batch, …, query, key)


def _normalise(vectors: Tensor) -> Tensor:
    """v / ‖v‖; 0, with a gradient of 0, where there is no length to divide by."""
    exact = at_least_single(vectors)
    norms = torch.linalg.vector_norm(exact, dim=-1, keepdim=True)  # (batch, …, position, 1)
    # Below this the squares underflow, and what is left of a norm is noise.
    vanishing = norms < math.sqrt(torch.finfo(exact.dtype).tiny)
    normalised = exact / norms.masked_fill(vanishing, math.inf)
    return normalised.to(vectors.dtype)


def _snapshot(tensor: Tensor) -> Tensor:
    """A learned vector may itself be query or key, as in HAN; what was seen must not change with
    it when the optimizer steps."""
    learned = isinstance(tensor, nn.Parameter) or isinstance(tensor._base, nn.Parameter)
    return tensor.clone() if learned else tensor


def _check_size(name: str, tensor: Tensor, size: int) -> None:
    if tensor.shape[-1] != size:
        raise ValueError(f"{name} {tuple(tensor.shape)} must end in the size {size}")
