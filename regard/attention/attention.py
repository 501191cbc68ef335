"""The attention core: a query scores keys, the scores become weights, the weights mix values."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.attended import Attended, change_heads, to_dense
from regard.attention.comparisons import Comparison, InnerProduct
from regard.attention.dropout import drop
from regard.attention.fused import fused_context, plain_context
from regard.attention.masks import Causal, Mask, as_mask
from regard.attention.positions import Bias
from regard.attention.prepared import Prepared
from regard.attention.recording import ActiveCall, active_sessions, find_call
from regard.attention.scores import Score
from regard.attention.weighings import Softmax, Weighing

SCORES_PER_BLOCK = 1 << 20
"""How many scores the explicit path makes at once where it can work row by row: 4 MB of float32."""

# Up to 128 tokens two plain products beat the fused kernel: with AVX-512 always, with AVX2 under a
# causal mask; without one the two are level there, and the kernel is the steadier of them.
# A property of the machine, not a race at run time: the same run must give the same bits.
MAX_PLAIN_CAUSAL_SCORES = 128 * 128
_AVX512 = torch.backends.cpu.get_cpu_capability() == "AVX512"
MAX_PLAIN_SCORES = MAX_PLAIN_CAUSAL_SCORES if _AVX512 else 0
"""Up to this many scores, queries that all see the same keys take two plain products on a CPU."""


class Attention(nn.Module):
    """context = weigh(score(queries, keys)) values

    The papers differ in the score and the weighing, so both are arguments. The common case, an
    inner product and a softmax, runs on torch's fused kernel, and the weights are computed from the
    `Attended` when somebody asks, for the rows they look at.
    """

    def __init__(
        self,
        score: Score,
        weigh: Weighing | None = None,
        dropout: float = 0.0,
        sides: tuple[str, str] | None = None,
    ):
        """sides says what queries and keys are, as ("target", "source"): see `sides.py`"""
        super().__init__()
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"dropout ({dropout}) must be at least 0 and below 1")
        self.score = score
        self.weigh = Softmax() if weigh is None else weigh
        self.dropout = dropout
        self.sides = sides

    def prepare(self, keys: Tensor) -> Prepared:
        """Transform keys ahead of the first query, for decoders that come back to them."""
        return self.score.prepare(keys)

    def forward(
        self,
        queries: Tensor,
        keys: Tensor | Prepared,
        values: Tensor,
        mask: Mask | Tensor | None = None,
        carried: Any = None,
        bias: Bias | None = None,
    ) -> Attended:
        """queries (batch, …, query, size), keys (…, key, size), values (…, key, value)"""
        prepared = keys if isinstance(keys, Prepared) else self.score.prepare(keys)
        _check_shapes(queries, prepared.keys, values)
        comparison = self.score.compare(queries, prepared)
        if bias is not None:
            comparison = _add_bias(comparison, bias)
        if mask is not None:
            mask = as_mask(mask)
            mask.check(tuple(values.shape[:-2]), *comparison.sizes)
        call = find_call(self) if active_sessions() else None
        if call is None:
            return self._attend(comparison, queries, values, mask, carried)
        # Masks that count positions say that the queries are the last of the keys.
        call.one_sequence |= isinstance(mask, Mask) and mask.counts_positions
        call.set_sizes(*comparison.sizes)
        attended = self._attend(comparison, queries, values, mask, carried, call)
        call.record(attended)
        return attended

    def _attend(
        self,
        comparison: Comparison,
        queries: Tensor,
        values: Tensor,
        mask: Mask | None,
        carried: Any,
        call: ActiveCall | None = None,
    ) -> Attended:
        heads: list[int] | None = []
        if call is not None and call.explicit:
            heads = call.changed_heads(values.shape[-3]) if comparison.axes >= 4 else None
        written = not self.weigh.pure or self._makes_all_weights(comparison, values, mask)
        if heads is None or written:
            return self._attend_explicitly(comparison, queries, values, mask, carried, call)
        context = self._compute_context(comparison, queries, values, mask)
        attended = Attended(context, comparison, mask, self.weigh, carried)
        if call is None or not heads:
            return attended
        return change_heads(attended, values, heads, call, self._rate)

    def _compute_context(
        self, comparison: Comparison, queries: Tensor, values: Tensor, mask: Mask | None
    ) -> Tensor:
        """The context alone, by the fastest path that fits."""
        if self._takes_kernel(comparison, mask):
            assert isinstance(comparison, InnerProduct) and isinstance(self.weigh, Softmax)
            sharpness = self.weigh.sharpness
            if _takes_plain_products(comparison, mask, self._rate > 0.0):
                return plain_context(comparison, values, mask, sharpness, self._rate)
            return fused_context(comparison, values, mask, sharpness)
        step = _rows_per_block(comparison, values)
        blocks = []
        for rows in torch.arange(comparison.sizes[0], device=values.device).split(step):
            part = comparison.rows(rows)
            blocks.append(self._mix(part, queries, values, to_dense(mask, comparison, rows)))
        return torch.cat(blocks, dim=-2)

    @property
    def _rate(self) -> float:
        """The share of the weights that is dropped at the moment."""
        return self.dropout if self.training else 0.0

    def _takes_kernel(self, comparison: Comparison, mask: Mask | None) -> bool:
        """Whether no weights need be written out; torch's kernel for CPUs cannot drop any, two
        plain products can."""
        if not (isinstance(comparison, InnerProduct) and isinstance(self.weigh, Softmax)):
            return False
        return self._rate == 0.0 or _takes_plain_products(comparison, mask, dropping=True)

    def _makes_all_weights(self, comparison: Comparison, values: Tensor, mask: Mask | None) -> bool:
        """Whether one block holds all weights, as in a decoder's step. They are then stored, and an
        objective or a look has them without computing them again."""
        if self._takes_kernel(comparison, mask):
            return False
        return _rows_per_block(comparison, values) >= comparison.sizes[0]

    def _mix(
        self, comparison: Comparison, queries: Tensor, values: Tensor, visible: Tensor | None
    ) -> Tensor:
        weights, _ = self.weigh(comparison.scores(), visible, queries, None)
        return drop(weights.to(comparison.dtype), self._rate) @ values

    def _attend_explicitly(
        self,
        comparison: Comparison,
        queries: Tensor,
        values: Tensor,
        mask: Mask | None,
        carried: Any,
        call: ActiveCall | None,
    ) -> Attended:
        """With the whole weight matrix, which is stored: for weighings that are not pure, for
        edits, and where it is small and has to be made anyway."""
        visible = to_dense(mask, comparison, None)
        weights, carried = self.weigh(comparison.scores(), visible, queries, carried)
        weights = weights.to(comparison.dtype)
        if call is not None:
            heads = range(weights.shape[-3]) if weights.dim() >= 4 else ()
            weights = call.change(weights, visible, heads, len(heads))
        context = drop(weights, self._rate) @ values  # (batch, …, query, value)
        return Attended(context, comparison, mask, self.weigh, carried, weights)


def _rows_per_block(comparison: Comparison, values: Tensor) -> int:
    """How many queries have their scores made at once."""
    return max(1, SCORES_PER_BLOCK // max(comparison.sizes[1] * values.shape[:-2].numel(), 1))


def _takes_plain_products(
    comparison: InnerProduct, mask: Mask | None, dropping: bool = False
) -> bool:
    """Whether there are so few scores that two plain products are faster than the kernel, or than
    to write out weights that are to be thinned."""
    queries, keys = comparison.sizes
    if comparison.device.type != "cpu" or comparison.bias is not None:
        return False
    if isinstance(mask, Causal):
        return 1 < queries == keys and queries * keys <= MAX_PLAIN_CAUSAL_SCORES
    if mask is not None and (not mask.rows_alike or queries == 1):
        # The one query of a decoder's step looks at slices of a cache, which the kernel takes as
        # they lie.
        return False
    return queries * keys <= (MAX_PLAIN_CAUSAL_SCORES if dropping else MAX_PLAIN_SCORES)


def _add_bias(comparison: Comparison, bias: Bias) -> InnerProduct:
    if not isinstance(comparison, InnerProduct):
        raise ValueError(
            f"bias ({type(bias).__name__}) needs a score that is an inner product, "
            f"got {type(comparison).__name__}"
        )
    heads, (queries, keys) = bias.by_distance.shape[0], comparison.sizes
    score_heads = comparison.queries.shape[-3] if comparison.axes >= 4 else None
    if score_heads != heads or len(bias.query_positions) != queries or bias.keys != keys:
        raise ValueError(
            f"bias is for {heads} heads, {len(bias.query_positions)} queries and {bias.keys} keys, "
            f"but the scores have {score_heads or 'no'} heads, {queries} queries and {keys} keys"
        )
    return InnerProduct(comparison.queries, comparison.keys, comparison.scale, bias)


def _check_shapes(queries: Tensor, keys: Tensor, values: Tensor) -> None:
    for name, tensor in (("queries", queries), ("keys", keys), ("values", values)):
        if tensor.dim() < 2:
            raise ValueError(f"{name} {tuple(tensor.shape)} must be (…, position, size)")
        if not tensor.is_floating_point():
            raise ValueError(f"{name} ({tensor.dtype}) must be floating-point numbers")
    dtypes = {queries.dtype, keys.dtype, values.dtype}
    if len(dtypes) > 1 and not torch.is_autocast_enabled(values.device.type):
        raise ValueError(
            f"queries ({queries.dtype}), keys ({keys.dtype}) and values ({values.dtype}) must be "
            "numbers of one precision"
        )
    if keys.shape[:-1] != values.shape[:-1]:
        raise ValueError(
            f"keys {tuple(keys.shape)} and values {tuple(values.shape)} must agree in all but the "
            "last axis: each key has its value"
        )
    if queries.shape[:-2] != keys.shape[:-2]:
        raise ValueError(
            f"queries {tuple(queries.shape)} and keys {tuple(keys.shape)} must agree in their "
            "leading axes (batch, head)"
        )
