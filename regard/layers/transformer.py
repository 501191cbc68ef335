"""One layer of a Transformer: self-attention, cross-attention if wanted, feed-forward network."""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn

from regard.attention import KeyValueCache, Mask, MultiHead, PreparedMemory, Rotary, Score
from regard.layers.dropout import Dropout
from regard.layers.feedforward import FeedForward
from regard.layers.norm import LayerNorm, add_residual


class TransformerLayer(nn.Module):
    """pre:  x = x + drop(block(norm(x)))   for each block: attention, cross_attention, feedforward
    post: x = norm(x + drop(block(x)))

    `cross_sides` makes it a decoder's layer, which looks at a memory between the other two: what
    its queries and keys are called, ("target", "source") say.

    Vaswani et al. (2017), section 3.1 and figure 1; the place of the norm: see `Residual`.
    """

    def __init__(
        self,
        model_size: int,
        heads: int,
        feedforward_size: int,
        *,
        activation: str = "relu",
        norm: str = "post",
        rotary: bool = False,
        dropout: float = 0.0,
        attention_dropout: float | None = None,  # of the attention weights; None: as everywhere
        feedforward_dropout: float = 0.0,  # between the two matrices of the feed-forward network
        eps: float = 1e-5,
        score: Score | None = None,  # of the words among themselves; None: scaled dot
        sides: tuple[str, str] = ("words", "words"),
        cross_sides: tuple[str, str] | None = None,
    ):
        super().__init__()
        rate = dropout if attention_dropout is None else attention_dropout
        self.norm_placement = norm
        self.attention_norm = LayerNorm(model_size, eps)
        position = Rotary(model_size // heads) if rotary else None
        self.attention = MultiHead(
            model_size, heads, score=score, position=position, dropout=rate, sides=sides
        )
        if cross_sides is not None:
            self.cross_attention_norm = LayerNorm(model_size, eps)
            self.cross_attention = MultiHead(model_size, heads, dropout=rate, sides=cross_sides)
        self.feedforward_norm = LayerNorm(model_size, eps)
        self.feedforward = FeedForward(
            model_size, feedforward_size, activation, dropout=feedforward_dropout
        )
        self.dropout = Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        mask: Mask | None = None,
        cache: KeyValueCache | None = None,
        memory: Tensor | PreparedMemory | None = None,
        memory_mask: Mask | None = None,
    ) -> Tensor:
        """(batch, position, model) → the same; a decoder's layer also reads `memory`."""
        placement, dropout = self.norm_placement, self.dropout
        attention = partial(self.attention, mask=mask, cache=cache)
        x = add_residual(x, attention, self.attention_norm, dropout, placement)
        if memory is not None:
            cross = partial(self.cross_attention, keys=memory, mask=memory_mask)
            x = add_residual(x, cross, self.cross_attention_norm, dropout, placement)
        return add_residual(x, self.feedforward, self.feedforward_norm, dropout, placement)
