"""A Transformer translator small enough to be trained in seconds: one encoder layer, one decoder.

Vaswani et al. (2017), figure 1, with the norm before each part.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import Causal, KeyValueCache, MultiHead, Padding, Sinusoidal
from regard.layers import Embedding, FeedForward, LayerNorm, Residual

PAIRS = (
    ("You are welcome", "De nada"),
    ("Thank you", "Gracias"),
    ("Good morning", "Buenos días"),
    ("Good night", "Buenas noches"),
    ("How are you", "Cómo estás"),
    ("See you tomorrow", "Hasta mañana"),
    ("I am hungry", "Tengo hambre"),
    ("Are you hungry", "Tienes hambre"),
)
PAD, START, END = "<pad>", "<start>", "<end>"
SIZE, HEADS, STEPS, RATE = 32, 2, 120, 0.01


class Vocabulary:
    """Words to ids and back."""

    def __init__(self, sentences: list[str]):
        words = {word: None for sentence in sentences for word in sentence.split()}
        self.words = [PAD, START, END, *words]
        self.ids = {word: i for i, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, sentences: list[list[str]]) -> tuple[Tensor, Tensor]:
        """Ids (sentence, position), filled up with padding, and the lengths (sentence,)."""
        lengths = torch.tensor([len(words) for words in sentences])
        ids = torch.full((len(sentences), int(lengths.max())), self.ids[PAD])
        for row, words in enumerate(sentences):
            ids[row, : len(words)] = torch.tensor([self.ids[word] for word in words])
        return ids, lengths

    def decode(self, ids: Tensor) -> list[str]:
        return [self.words[i] for i in ids.tolist()]


class Translator(nn.Module):
    """An encoder-decoder Transformer with one layer each."""

    def __init__(self, source: Vocabulary, target: Vocabulary):
        super().__init__()
        self.source_vocabulary, self.target_vocabulary = source, target
        self.source_embedding = Embedding(len(source), SIZE, scaled=True)
        self.target_embedding = Embedding(len(target), SIZE, scaled=True)
        self.positions = Sinusoidal(SIZE)
        self.encoder_attention = Residual(MultiHead(SIZE, HEADS), SIZE)
        self.encoder_feedforward = Residual(FeedForward(SIZE, 2 * SIZE), SIZE)
        self.decoder_attention = Residual(MultiHead(SIZE, HEADS), SIZE)
        self.cross_attention = Residual(MultiHead(SIZE, HEADS), SIZE)
        self.decoder_feedforward = Residual(FeedForward(SIZE, 2 * SIZE), SIZE)
        self.norm = LayerNorm(SIZE)
        self.output = nn.Linear(SIZE, len(target))

    def encode(self, source: Tensor, lengths: Tensor) -> Tensor:
        """Source ids (sentence, position) → memory (sentence, position, size)."""
        vectors = self.positions(self.source_embedding(source))
        return self.encoder_feedforward(self.encoder_attention(vectors, mask=Padding(lengths)))

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        memory_mask: Padding | None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Logits of the word after each of `target`; a cache holds the words before them."""
        start = 0 if cache is None else cache.length
        vectors = self.positions(self.target_embedding(target), start=start)
        vectors = self.decoder_attention(vectors, mask=Causal(), cache=cache)
        vectors = self.cross_attention(vectors, memory, mask=memory_mask)
        vectors = self.norm(self.decoder_feedforward(vectors))
        return self.output(vectors)  # (sentence, position, vocabulary)


def train_translator() -> Translator:
    """Train a translator on PAIRS, with torch's generator as it stands."""
    sources, targets = (list(side) for side in zip(*PAIRS, strict=True))
    vocabulary = Vocabulary(targets)
    translator = Translator(Vocabulary(sources), vocabulary)
    source, lengths = translator.source_vocabulary.encode([text.split() for text in sources])
    target_input, _ = vocabulary.encode([[START, *text.split()] for text in targets])
    target_output, _ = vocabulary.encode([[*text.split(), END] for text in targets])
    optimizer = torch.optim.Adam(translator.parameters(), lr=RATE)
    padding = vocabulary.ids[PAD]
    for _ in range(STEPS):
        memory = translator.encode(source, lengths)
        logits = translator.decode(target_input, memory, Padding(lengths))
        loss = F.cross_entropy(logits.flatten(0, 1), target_output.flatten(), ignore_index=padding)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return translator.eval()
