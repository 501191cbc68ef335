"""One attention learns to read words backwards, and its map shows that it does.

The smallest journey through the house: a task with a known right answer, a model of one attention,
a look inside, and an edit that shows the look to be a cause.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import LearnedPositions, Look, MultiHead, Padding, edit, watch

ALPHABET = "abcdefghijklmnopqrstuvwxyz"
LONGEST = 14


class Backwards(nn.Module):
    """letter i of the answer = letter (length − 1 − i) of the word

    A query knows only how many letters are still to come, a key its letter and its place.
    """

    def __init__(self, model_size: int = 64, heads: int = 1):
        super().__init__()
        self.letters = nn.Embedding(len(ALPHABET), model_size)
        self.places = LearnedPositions(LONGEST, model_size)
        self.remaining = nn.Embedding(LONGEST, model_size)
        self.attention = MultiHead(model_size, heads)
        self.output = nn.Linear(model_size, len(ALPHABET))

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        keys = self.places(self.letters(ids))  # (batch, place, model)
        left = lengths.unsqueeze(-1) - 1 - torch.arange(ids.shape[1])  # (batch, place)
        queries = self.remaining(left.clamp(min=0))  # (batch, place, model)
        looked = self.attention(queries, keys, mask=Padding(lengths))
        return self.output(looked)  # (batch, place, letter)


def random_words(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Letters (word, place) and how many of them count (word,)."""
    ids = torch.randint(len(ALPHABET), (count, LONGEST), generator=generator)
    lengths = torch.randint(2, LONGEST + 1, (count,), generator=generator)
    return ids, lengths


def reversed_ids(ids: Tensor, lengths: Tensor) -> Tensor:
    """The right answer; what lies beyond a word's length is left as −1."""
    places = lengths.unsqueeze(-1) - 1 - torch.arange(ids.shape[1])  # (word, place)
    return ids.gather(1, places.clamp(min=0)).masked_fill(places < 0, -1)


def train(model: Backwards, steps: int = 200, seed: int = 1) -> Iterator[tuple[int, float]]:
    """Train in place; tells step and loss as it goes."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(1, steps + 1):
        ids, lengths = random_words(64, generator)
        logits = model(ids, lengths)
        loss = F.cross_entropy(
            logits.flatten(0, 1), reversed_ids(ids, lengths).flatten(), ignore_index=-1
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield step, loss.item()


@torch.no_grad()
def exact_match(model: Backwards, count: int = 1000, seed: int = 2) -> float:
    """The share of unseen random words that come out right to the last letter."""
    ids, lengths = random_words(count, torch.Generator().manual_seed(seed))
    truth = reversed_ids(ids, lengths)
    said = model(ids, lengths).argmax(dim=-1)
    return ((said == truth) | (truth == -1)).all(dim=-1).float().mean().item()


@torch.no_grad()
def read(model: Backwards, word: str) -> tuple[str, Look]:
    """The word backwards as the model says it, and where it looked for each letter."""
    unknown = [letter for letter in word if letter not in ALPHABET]
    if unknown or not 1 <= len(word) <= LONGEST:
        raise ValueError(f"word ({word!r}) must be 1 to {LONGEST} small letters a to z")
    ids = torch.tensor([[ALPHABET.index(letter) for letter in word]])
    with watch(model) as seen:
        logits = model(ids, torch.tensor([len(word)]))
    answer = "".join(ALPHABET[i] for i in logits[0].argmax(dim=-1))
    (attended,) = seen["attention"]
    look = Look.of(attended, queries=list(answer), keys=list(word), path="attention", kind="cross")
    return answer, look


def blinded(model: Backwards) -> float:
    """Exact match when the attention may no longer choose: every letter weighs the same."""
    with edit(model, {"attention": "uniform"}):
        return exact_match(model)
