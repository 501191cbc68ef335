"""python -m benchmarks.transformer_lm: a training step of the `shakespeare-char` model against a
plain PyTorch implementation of the same model, written the way nanoGPT is.

4 layers, 4 heads, 128 wide, 64 characters, 12 rows, 65 characters to choose from, no dropout and no
biases, as in the recipe and in nanoGPT's own settings. Each competitor has a process of its own,
since `regard train` has the C library keep freed memory; the last row gives that to the peer too.
Measure on a quiet machine: another busy process can triple what two threads take.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.racing import Row, compared, compete, print_table, race_apart
from regard.data.batches import Words
from regard.models import GPT2, GPT2Config
from regard.tasks.language_model import NextWord
from regard.training.memory import keep_freed_memory
from regard.training.optimizers import clip_gradients, gradient_norm

VOCABULARY, CONTEXT, ROWS = 65, 64, 12
LAYERS, HEADS, SIZE = 4, 4, 128
CLIP = 1.0


class Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(SIZE, 3 * SIZE, bias=False)
        self.leave = nn.Linear(SIZE, SIZE, bias=False)
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
        self.wide = nn.Linear(SIZE, 4 * SIZE, bias=False)
        self.narrow = nn.Linear(4 * SIZE, SIZE, bias=False)
        self.gelu, self.dropout = nn.GELU(), nn.Dropout(0.0)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.narrow(self.gelu(self.wide(x))))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.attending = nn.LayerNorm(SIZE, bias=False), Attending()
        self.second, self.thinking = nn.LayerNorm(SIZE, bias=False), Thinking()

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
        self.norm = nn.LayerNorm(SIZE, bias=False)
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


def peer_step(ids: Tensor, fused: bool) -> Callable[[], object]:
    """A whole step: forward, loss, backward, clipping, optimizer."""
    model = Peer()
    steps = optimizer(model, fused)
    inputs, targets = ids[:, :-1].contiguous(), ids[:, 1:].contiguous()

    def step() -> None:
        model(inputs, targets).backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        steps.step()
        steps.zero_grad(set_to_none=True)

    return step


def our_step(ids: Tensor) -> Callable[[], object]:
    """The step of regard's training loop, on the model of the recipe."""
    config = GPT2Config(
        vocabulary_size=VOCABULARY,
        longest=CONTEXT,
        model_size=SIZE,
        layers=LAYERS,
        heads=HEADS,
        activation="gelu",
        dropout=0.0,
        bias=False,
    )
    model = GPT2(config)
    objective, steps = NextWord(model), optimizer(model, fused=True)
    mask = torch.ones(ROWS, CONTEXT, dtype=torch.bool)
    batch = Words(ids[:, :-1].contiguous(), ids[:, 1:].contiguous(), mask)

    def step() -> None:
        loss = objective(batch).parts["loss"]
        (loss / batch.tokens).backward()
        clip_gradients(model, CLIP, gradient_norm(model))
        steps.step()
        steps.zero_grad(set_to_none=True)

    return step


def competitor(name: str) -> Callable[[], object]:
    """regard, the peer as it is, the peer with the fused optimizer, and that keeping its memory."""
    torch.manual_seed(0)
    ids = torch.randint(VOCABULARY, (ROWS, CONTEXT + 1))
    if name in ("regard", "kept"):
        keep_freed_memory()
    return our_step(ids) if name == "regard" else peer_step(ids, fused=name != "peer")


def rows(threads: int) -> list[Row]:
    names = ["regard", "peer", "fused", "kept"]
    ours, plain, fused, kept = race_apart("benchmarks.transformer_lm", names, threads)
    speed = f"{threads} threads, {1000 * ROWS * CONTEXT / ours:,.0f} tokens/s"
    return [
        compared(f"training step, {speed}", ours, plain, at_least=1.25),
        compared("  the same, the peer with fused AdamW", ours, fused, at_least=1.25),
        compared("  the same, and keeping freed memory too", ours, kept, at_least=1.25),
    ]


def main() -> None:
    match sys.argv[1:]:
        case ["--compete", name, threads]:
            torch.set_num_threads(int(threads))
            compete(competitor(name))
        case _:
            table = [row for threads in (2, 1) for row in rows(threads)]
            print_table(f"Transformer language model, torch {torch.__version__}", table)


if __name__ == "__main__":
    main()
