"""python -m benchmarks.lstm_lm: a training step of a small word LSTM against the usual PyTorch one.

Two layers of 200, 20 rows, 10,000 words, no dropout (the small model of Zaremba et al., 2014), with
20 and with 35 words a row; the peer: `nn.LSTM` + `nn.Linear` + `F.cross_entropy` + clipping + SGD.
Memory at the 33,278 words of WikiText-2. Each competitor has a process of its own, since `regard
train` has the C library keep freed memory; the last row gives that to the peer as well.
Measure on a quiet machine: another busy process can triple what two threads take.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.memory import measured, peak_megabytes
from benchmarks.racing import Row, below, compared, compete, print_table, race_apart
from regard.data.batches import Words
from regard.models import RecurrentConfig, RecurrentLM
from regard.tasks.language_model import NextWord
from regard.training.memory import keep_freed_memory
from regard.training.optimizers import clip_gradients, gradient_norm

SIZE, LAYERS, ROWS = 200, 2, 20
WORDS, MANY_WORDS = 10_000, 33_278
RATE, CLIP = 1.0, 5.0


class Peer(nn.Module):
    def __init__(self, words: int):
        super().__init__()
        self.embedding = nn.Embedding(words, SIZE)
        self.lstm = nn.LSTM(SIZE, SIZE, LAYERS, batch_first=True)
        self.output = nn.Linear(SIZE, words)

    def forward(
        self, ids: Tensor, targets: Tensor, state: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        states, state = self.lstm(self.embedding(ids), state)
        logits = self.output(states)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten()), state


def usual_step(words: int, length: int) -> Callable[[], object]:
    """The step of the usual word-LM example."""
    model, ids = Peer(words), torch.randint(words, (ROWS, length + 1))
    inputs, targets = ids[:, :-1].contiguous(), ids[:, 1:].contiguous()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    state: tuple[Tensor, Tensor] | None = None

    def step() -> None:
        nonlocal state
        loss, after = model(inputs, targets, state)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad()
        state = (after[0].detach(), after[1].detach())

    return step


def our_step(words: int, length: int) -> Callable[[], object]:
    """The step of regard's training loop."""
    model = RecurrentLM(RecurrentConfig(vocabulary_size=words, layers=LAYERS, hidden_size=SIZE))
    objective, ids = NextWord(model), torch.randint(words, (ROWS, length + 1))
    mask = torch.ones(ROWS, length, dtype=torch.bool)
    batch = Words(ids[:, :-1].contiguous(), ids[:, 1:].contiguous(), mask)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, fused=True)
    state = None

    def step() -> None:
        nonlocal state
        outcome = objective(batch, state)
        (outcome.parts["loss"] / batch.tokens).backward()
        clip_gradients(model, CLIP, gradient_norm(model))
        optimizer.step()
        optimizer.zero_grad()
        state = outcome.state.detach()

    return step


def competitor(name: str, words: int) -> Callable[[], object]:
    """`regard-35`, `peer-35` or `kept-35`: who, and with how many words a row."""
    who, length = name.split("-")
    torch.manual_seed(0)
    if who != "peer":
        keep_freed_memory()
    return (our_step if who == "regard" else usual_step)(words, int(length))


def speed(threads: int, length: int) -> list[Row]:
    names = [f"{who}-{length}" for who in ("regard", "peer", "kept")]
    ours, peer, kept = race_apart("benchmarks.lstm_lm", names, threads, rounds=11)
    tokens = f"{1000 * ROWS * length / ours:,.0f} tokens/s"
    what = f"{threads} threads, {ROWS} × {length}, {tokens}"
    return [
        compared(f"training step, {what}", ours, peer, at_least=1.2),
        compared("  the same, the peer keeping freed memory too", ours, kept, at_least=1.2),
    ]


def memory() -> Row:
    ours, theirs = (peak_megabytes("benchmarks.lstm_lm", name) for name in ("regard-35", "peer-35"))
    what = f"three steps, {ROWS} × 35, {MANY_WORDS:,} words: peak memory"
    return below(what, ours, round(theirs, 1), "MB", f"{theirs:.1f} MB")


def three_steps(name: str) -> None:
    step = competitor(name, MANY_WORDS)

    def work() -> None:
        for _ in range(3):
            step()

    print(measured(work))


def main() -> None:
    match sys.argv[1:]:
        case ["--memory", name]:
            three_steps(name)
        case ["--compete", name, threads]:
            torch.set_num_threads(int(threads))
            compete(competitor(name, WORDS))
        case _:
            cases = [(threads, length) for threads in (2, 1) for length in (20, 35)]
            rows = [row for case in cases for row in speed(*case)]
            print_table(f"LSTM language model, torch {torch.__version__}", [*rows, memory()])


if __name__ == "__main__":
    main()
