"""Token embeddings, and logits from the same table."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Embedding(nn.Module):
    """e(id) = E[id], or √size · E[id] when scaled

    Each id has a row of its own. The row of `padding_id` is zero and gets no gradient. `logits`
    multiplies by the same table, for models that tie input and output embeddings.

    Bengio et al. (2003), section 2. Tied: Press & Wolf (2017). Scaled, so that positions do not
    drown the words: Vaswani et al. (2017), section 3.4.
    """

    def __init__(
        self, vocabulary_size: int, size: int, padding_id: int | None = None, scaled: bool = False
    ):
        super().__init__()
        if padding_id is not None and not 0 <= padding_id < vocabulary_size:
            raise ValueError(f"padding_id ({padding_id}) must be from 0 to {vocabulary_size - 1}")
        self.vocabulary_size, self.size = vocabulary_size, size
        self.padding_id, self.scaled = padding_id, scaled
        # What comes out has variance 1 either way; a scaled table gives such logits, too.
        table = torch.randn(vocabulary_size, size)
        self.weight = nn.Parameter(table * size**-0.5 if scaled else table)
        if padding_id is not None:
            nn.init.zeros_(self.weight[padding_id])

    def forward(self, ids: Tensor) -> Tensor:
        """(…) whole numbers → (…, size)."""
        if ids.dtype not in (torch.int64, torch.int32):
            raise ValueError(f"ids ({ids.dtype}) must be whole numbers")
        try:
            vectors = F.embedding(ids, self.weight, self.padding_id)  # (…, size)
        except IndexError as error:
            wrong = ids[(ids < 0) | (ids >= self.vocabulary_size)]
            raise ValueError(
                f"ids ({int(wrong[0])}) must be from 0 to {self.vocabulary_size - 1}"
            ) from error
        return vectors * math.sqrt(self.size) if self.scaled else vectors

    def logits(self, vectors: Tensor) -> Tensor:
        """(…, size) → (…, vocabulary): inner products with the rows; 0 for padding."""
        table: Tensor = self.weight
        if self.padding_id is not None and torch.is_grad_enabled():
            # The row is zero already. This keeps it so, for here it would learn to be unlikely.
            table = table.index_fill(0, torch.tensor(self.padding_id, device=table.device), 0.0)
        return F.linear(vectors, table)

    def extra_repr(self) -> str:
        padding = "" if self.padding_id is None else f", padding_id={self.padding_id}"
        return f"{self.vocabulary_size}, {self.size}{padding}" + ", scaled=True" * self.scaled
