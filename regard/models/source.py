"""The source sentence as a decoder keeps looking at it, and how it was read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention import Attention, Padding, Prepared
from regard.layers import Dropout, Embedding, Recurrent, RecurrentState


@dataclass(frozen=True)
class Source:
    """What was read, its keys made once for all steps, and how long each sentence is."""

    memory: Tensor  # (batch, source, memory)
    keys: Prepared  # of the memory
    mask: Padding
    sentences: Tensor  # (batch,), which source sentence each row translates

    @classmethod
    def prepare(cls, memory: Tensor, lengths: Tensor, attention: Attention) -> Source:
        sentences = torch.arange(len(memory), device=memory.device)
        return cls(memory, attention.prepare(memory), Padding(lengths), sentences)

    def pick(self, rows: Tensor) -> Source:
        sentences = self.sentences.index_select(0, rows)
        # A beam trades places among hypotheses of one sentence, and then the memory can stay.
        if torch.equal(sentences, self.sentences):
            return self
        memory = self.memory.index_select(0, rows)
        return Source(memory, self.keys.pick(rows), self.mask.pick(rows), sentences)

    def detach(self) -> Source:
        return replace(self, memory=self.memory.detach(), keys=self.keys.detach())


class StackedEncoder(nn.Module):
    """An LSTM on an LSTM that reads the source, backward if `reverse`

    Read backward, the first words are the freshest when the decoder begins with theirs. Outputs
    stand in the order of the source either way, so that a position is a word's own.

    Sutskever, Vinyals & Le (2014), section 3.3.
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding_size: int,
        hidden_size: int,
        layers: int,
        reverse: bool,
        dropout: float,
        scaled: bool = False,  # the embedding's vectors, for tables that an output layer reads too
    ):
        super().__init__()
        self.reverse = reverse
        self.embedding = Embedding(vocabulary_size, embedding_size, scaled=scaled)
        self.dropout = Dropout(dropout)
        self.recurrent = Recurrent("lstm", embedding_size, hidden_size, layers, dropout=dropout)

    def forward(self, ids: Tensor, lengths: Tensor) -> tuple[Tensor, RecurrentState]:
        """(batch, source) → (batch, source, hidden), and the states at the end of the reading,
        (layer, batch, hidden)."""
        vectors = self.dropout(self.embedding(ids))  # (batch, source, embedding)
        if not self.reverse:
            return self.recurrent(vectors, lengths)
        outputs, ends = self.recurrent(reverse_words(vectors, lengths), lengths)
        return reverse_words(outputs, lengths), ends


def reverse_words(vectors: Tensor, lengths: Tensor) -> Tensor:
    """(batch, position, size) with the words of each row last to first; padding stays behind."""
    positions = torch.arange(vectors.shape[1], device=vectors.device)
    turned = lengths.unsqueeze(1) - 1 - positions  # (batch, position), below 0 at padding
    places = torch.where(turned >= 0, turned, positions)
    return vectors.gather(1, places.unsqueeze(-1).expand_as(vectors))


def share_table(config: Any, target: Embedding, output: nn.Module, source: Embedding) -> None:
    """Have one table serve the target's words, the output layer (`tied`), the source (`shared`)."""
    if config.tied:
        output.weight = target.weight
    if config.shared:
        source.weight = target.weight
