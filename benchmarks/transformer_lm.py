"""python -m benchmarks.transformer_lm: a training step of the `shakespeare-char` model against a
plain PyTorch implementation of the same model, written the way nanoGPT is.

4 layers, 4 heads, 128 wide, 64 characters, 12 rows, 65 characters to choose from, no dropout.
Measure on a quiet machine: another busy process can triple what two threads take.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.racing import Row, compared, print_table, race
from regard.data.batches import Words
from regard.layers.output import linear_cross_entropy
from regard.models import TransformerLM, TransformerLMConfig

VOCABULARY, CONTEXT, ROWS = 65, 64, 12
LAYERS, HEADS, SIZE = 4, 4, 128
CLIP = 1.0


class Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(SIZE, 3 * SIZE)
        self.leave = nn.Linear(SIZE, SIZE)
        self.dropout = nn.Dropout(0.0)

    def forward(self, x: Tensor) -> Tensor:
        rows, length, _ = x.shape
        parts = self.project(x).split(SIZE, dim=2)
        q, k, v = (y.view(rows, length, HEADS, SIZE // HEADS).transpose(1, 2) for y in parts)
        read = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        read = read.transpose(1, 2).contiguous().view(rows, length, SIZE)
        return self.dropout(self.leave(read))


class Thinking(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Linear(SIZE, 4 * SIZE), nn.Linear(4 * SIZE, SIZE)
        self.gelu, self.dropout = nn.GELU(), nn.Dropout(0.0)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.narrow(self.gelu(self.wide(x))))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.attending = nn.LayerNorm(SIZE), Attending()
        self.second, self.thinking = nn.LayerNorm(SIZE), Thinking()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attending(self.first(x))
        return x + self.thinking(self.second(x))


class Peer(nn.Module):
    """The same model from torch's own modules, its loss within."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, SIZE), nn.Embedding(CONTEXT, SIZE)
        self.dropout = nn.Dropout(0.0)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(SIZE)
        self.head = nn.Linear(SIZE, VOCABULARY, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids: Tensor, targets: Tensor) -> Tensor:
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.dropout(self.words(ids) + self.places(places))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1))


def optimizer(model: nn.Module, fused: bool) -> torch.optim.AdamW:
    """Weight decay for matrices alone, as nanoGPT has it; fused there only on a GPU."""
    matrices = [weight for weight in model.parameters() if weight.dim() > 1]
    vectors = [weight for weight in model.parameters() if weight.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99), fused=fused)


def learning(model: nn.Module, loss: Callable[[], Tensor], fused: bool) -> Callable[[], object]:
    """A whole step: forward, loss, backward, clipping, optimizer."""
    steps = optimizer(model, fused)

    def step() -> None:
        loss().backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        steps.step()
        steps.zero_grad(set_to_none=True)

    return step


def competitors() -> list[Callable[[], object]]:
    """regard, the peer as it is, and the peer with our optimizer."""
    torch.manual_seed(0)
    ids = torch.randint(VOCABULARY, (ROWS, CONTEXT + 1))
    batch = Words(ids[:, :-1], ids[:, 1:], torch.ones(ROWS, CONTEXT, dtype=torch.bool))
    inputs, targets = batch.inputs.contiguous(), batch.targets.contiguous()
    config = TransformerLMConfig(
        vocabulary_size=VOCABULARY,
        longest=CONTEXT,
        model_size=SIZE,
        layers=LAYERS,
        heads=HEADS,
        activation="gelu",
        dropout=0.0,
    )
    ours = TransformerLM(config)

    def loss() -> Tensor:
        features, _ = ours.features(batch)
        total = linear_cross_entropy(features, ours.output.weight, None, targets, batch.mask)
        return total / batch.tokens

    peers = [Peer(), Peer()]
    return [
        learning(ours, loss, fused=True),
        learning(peers[0], lambda: peers[0](inputs, targets), fused=False),
        learning(peers[1], lambda: peers[1](inputs, targets), fused=True),
    ]


def rows(threads: int) -> list[Row]:
    torch.set_num_threads(threads)
    ours, plain, fused = race(competitors(), seconds=20.0, rounds=41)
    tokens = ROWS * CONTEXT
    speed = f"{threads} threads, {1000 * tokens / ours:,.0f} tokens/s"
    return [
        compared(f"training step, {speed} (nanoGPT-style)", ours, plain, at_least=1.25),
        compared(f"training step, {speed} (the same, fused AdamW)", ours, fused, at_least=1.25),
    ]


def main() -> None:
    table = [row for threads in (2, 1) for row in rows(threads)]
    print_table(f"Transformer language model, torch {torch.__version__}", table)


if __name__ == "__main__":
    main()
