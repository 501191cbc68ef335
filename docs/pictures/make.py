"""Makes the pictures of the README and the docs: python docs/pictures/make.py [runs/imdb-han]

With a run of imdb-han, the review is drawn, too.

A small attention-only model learns to continue a list of words that is said twice. To do so a
head must find where the present word stood before and look at what came after it; the map shows
which heads do.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import Causal, LearnedPositions, Look, MultiHead, watch
from regard.looking import Looks
from regard.running import load

HERE = Path(__file__).parent
WORDS = (
    *("the", "old", "cat", "sat", "on", "a", "warm", "mat", "and", "saw", "two", "grey", "birds"),
    *("fly", "over", "our", "green", "hill", "while", "rain", "fell", "down", "into", "her"),
    *("small", "red", "boat", "near", "that", "deep", "lake", "where", "no", "wind", "blew"),
    *("all", "day", "long"),
)
HEADS, SIZE = 12, 192
REVIEW = (
    "I went in expecting very little, and for the first half hour that is what I got. The plot "
    "crawls, the jokes are stale, and Mr. Harlow seems half asleep. Then the storm breaks... and "
    "so does the film! What follows is a wonderful, moving duel between two great actors.\n\nThe "
    "score is superb. My only complaint is the ending, which is a little too neat. Don't let that "
    "stop you: this is one of the best small films of the year."
)


class Repeater(nn.Module):
    """Two layers of attention over words and positions, and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(WORDS), SIZE)
        self.positions = LearnedPositions(32, SIZE)
        self.layers = nn.ModuleList(MultiHead(SIZE, HEADS) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(SIZE) for _ in range(2))
        self.output = nn.Linear(SIZE, len(WORDS))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.positions(self.embedding(ids))  # (batch, position, model)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = x + layer(norm(x), mask=Causal())
        return self.output(x)  # (batch, position, word)


def lists(count: int, length: int) -> Tensor:
    """Different words in random order, said twice: (list, 2 · length)."""
    once = torch.stack([torch.randperm(len(WORDS))[:length] for _ in range(count)])
    return torch.cat([once, once], dim=1)


def train(model: Repeater, steps: int) -> float:
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    loss = torch.zeros(())
    for _ in range(steps):
        length = int(torch.randint(4, 12, ()))
        ids = lists(64, length)
        logits = model(ids[:, :-1])[:, length - 1 :]  # only the second time can be known
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, length:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main() -> None:
    torch.manual_seed(2)
    torch.set_num_threads(1)  # two threads add up in another order, and the picture would differ
    model = Repeater()
    print(f"loss {train(model, 1500):.4f}")
    said = ["grey", "birds", "saw", "the", "cat", "near", "our", "lake"]
    ids = torch.tensor([[WORDS.index(word) for word in said[:6] * 2]])
    with watch(model) as seen, torch.no_grad():
        model(ids)
    words = said[:6] * 2
    look = Look.of(seen["layers.1"][0], queries=words, keys=words, path="layers.1")
    Looks([look]).save(HERE / "heads.svg")
    for run in sys.argv[1:]:
        load(Path(run)).look(REVIEW).save(HERE / "review.svg")


if __name__ == "__main__":
    main()
