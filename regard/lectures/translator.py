"""A translator small enough to be trained in seconds: one layer to read, one to write.

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


class Words:
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
    """Read the source once; say each word looking at what was said and at all that was read."""

    def __init__(self, source: Words, target: Words):
        super().__init__()
        self.source, self.target = source, target
        self.source_embedding = Embedding(len(source), SIZE, scaled=True)
        self.target_embedding = Embedding(len(target), SIZE, scaled=True)
        self.positions = Sinusoidal(SIZE)
        self.reading = Residual(MultiHead(SIZE, HEADS), SIZE)
        self.thinking = Residual(FeedForward(SIZE, 2 * SIZE), SIZE)
        self.recalling = Residual(MultiHead(SIZE, HEADS), SIZE)
        self.looking = Residual(MultiHead(SIZE, HEADS), SIZE)
        self.choosing = Residual(FeedForward(SIZE, 2 * SIZE), SIZE)
        self.norm = LayerNorm(SIZE)
        self.output = nn.Linear(SIZE, len(target))

    def read(self, source: Tensor, lengths: Tensor) -> Tensor:
        """The memory a source leaves, (sentence, position, size)."""
        vectors = self.positions(self.source_embedding(source))
        return self.thinking(self.reading(vectors, mask=Padding(lengths)))

    def say(
        self, said: Tensor, memory: Tensor, seen: Padding | None, cache: KeyValueCache | None = None
    ) -> Tensor:
        """Logits of the next word behind each of `said`; a cache holds the words before them."""
        start = 0 if cache is None else cache.length
        vectors = self.positions(self.target_embedding(said), start=start)
        vectors = self.recalling(vectors, mask=Causal(), cache=cache)
        vectors = self.looking(vectors, memory, mask=seen)
        return self.output(self.norm(self.choosing(vectors)))  # (sentence, position, vocabulary)


def trained() -> Translator:
    """A translator that knows PAIRS. Draws random numbers."""
    sources, targets = (list(side) for side in zip(*PAIRS, strict=True))
    translator = Translator(Words(sources), Words(targets))
    source, lengths = translator.source.encode([sentence.split() for sentence in sources])
    said, _ = translator.target.encode([[START, *sentence.split()] for sentence in targets])
    wanted, _ = translator.target.encode([[*sentence.split(), END] for sentence in targets])
    optimizer = torch.optim.Adam(translator.parameters(), lr=RATE)
    padding = translator.target.ids[PAD]
    for _ in range(STEPS):
        logits = translator.say(said, translator.read(source, lengths), Padding(lengths))
        loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=padding)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return translator.eval()
