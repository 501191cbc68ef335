"""Translate from a single vector: the source is read to its end, and then told from memory.

v = the state of a stacked LSTM behind the last source word
p(y_i) = softmax(W_o h_i),  h = a second stacked LSTM over y, started from v

Whatever the translation needs of the source must fit into v, however long the source is: the
bottleneck that attention removes. The source is read backward, so that its first words are fresh
when the first words are said.

Sutskever, Vinyals & Le (2014), "Sequence to sequence learning with neural networks", section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from regard.data.batches import Pairs
from regard.layers import Dropout, Embedding, Recurrent, RecurrentState
from regard.models.checks import check_at_least, check_rates, check_shared, check_tied
from regard.models.source import StackedEncoder, share_table
from regard.products import Linear


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig:
    """Sutskever et al. (2014), section 3.4. The defaults are its own."""

    vocabulary_size: int  # of the target
    source_vocabulary_size: int | None = None  # None: the target's
    embedding_size: int = 1000
    hidden_size: int = 1000
    layers: int = 4
    reverse: bool = True  # read the source backward
    tied: bool = False  # the output layer reads the embedding's table
    shared: bool = False  # words of source and target have one table, for units they have in common
    dropout: float = 0.0  # of words' vectors, between layers and before the output

    def __post_init__(self) -> None:
        check_at_least(1, self, "vocabulary_size", "source_vocabulary_size", "embedding_size")
        check_at_least(1, self, "hidden_size", "layers")
        check_rates(self, "dropout")
        check_tied(self, "hidden_size", "embedding_size")
        check_shared(self)


class Seq2Seq(nn.Module):
    """Read everything, then say everything."""

    carries = False

    def __init__(self, config: Seq2SeqConfig):
        super().__init__()
        self.config = config
        size = config.source_vocabulary_size or config.vocabulary_size
        sizes = (config.embedding_size, config.hidden_size, config.layers)
        scaled = config.tied and config.shared  # as the decoder's, whose table it then has
        self.encoder = StackedEncoder(size, *sizes, config.reverse, config.dropout, scaled=scaled)
        # A scaled table has the small numbers that an output layer starts with.
        self.embedding = Embedding(
            config.vocabulary_size, config.embedding_size, scaled=config.tied
        )
        self.dropout = Dropout(config.dropout)
        self.decoder = Recurrent("lstm", *sizes, dropout=config.dropout)
        self.output = Linear(config.hidden_size, config.vocabulary_size)
        share_table(config, self.embedding, self.output, self.encoder.embedding)

    def forward(self, batch: Pairs) -> Tensor:
        return self.output(self.features(batch)[0])  # (batch, target, vocabulary)

    def features(self, batch: Pairs, state: None = None) -> tuple[Tensor, None]:
        """What the output layer reads, (batch, target, hidden)."""
        words = self.dropout(self.embedding(batch.target_input))  # (batch, target, embedding)
        hidden, _ = self.decoder(words, batch.target_mask.sum(dim=1), self.start(batch))
        return self.dropout(hidden), None

    def start(self, batch: Pairs) -> RecurrentState:
        """The state before the first word: all that is left of the source."""
        return self.encoder(batch.source, batch.source_mask.sum(dim=1))[1]

    def step(self, ids: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """Last words (batch,) → logits of the next (batch, vocabulary), and the state after."""
        hidden, state = self.decoder.step(self.dropout(self.embedding(ids)), state)
        return self.output(self.dropout(hidden)), state
