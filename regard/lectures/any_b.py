"""Has there been a B? The next symbol is B if any B has been seen, else A.

B A A A … A: with a thousand As behind it, the lecture says, the B is hard to remember for an RNN
and easy to find for attention. Three networks of one layer are trained to see when that is so. The
strings are the two that differ in their first symbol only; what varies is the length, and whether
the loss is taken at every position or at the last one alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import Attention, Causal, Dot, Look, MultiHead, watch
from regard.layers import Embedding, Recurrent
from regard.lectures.catalog import TITLES
from regard.lectures.formatting import double, table
from regard.lectures.lesson import SELF_ATTENTION, Lesson, step
from regard.lectures.seeding import fixed_seed
from regard.looking import Curves

SIZE, HEADS, RATE, CLIP = 16, 4, 0.003, 0.1
A, B = 0, 1
STRENGTH = 10.0  # of the query of one head that asks for the B
LENGTHS_OF_ONE_HEAD = (10, 100, 1_000, 10_000, 100_000)


@dataclass(frozen=True)
class Plan:
    """How much to train."""

    lengths: tuple[int, ...] = (10, 50, 200)
    seeds: int = 3
    steps: int = 200


class RecurrentModel(nn.Module):
    """A recurrent network: all it knows of the past is in its state."""

    def __init__(self, kind: str):
        super().__init__()
        self.embedding = Embedding(2, SIZE)
        self.recurrent = Recurrent(kind, SIZE, SIZE)
        self.output = nn.Linear(SIZE, 2)

    def forward(self, strings: Tensor) -> Tensor:
        states, _ = self.recurrent(self.embedding(strings))  # (string, position, size)
        return self.output(states)  # (string, position, symbol)


class AttentionModel(nn.Module):
    """Self-attention without positions: all of the past is there to be looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = Embedding(2, SIZE)
        self.attention = MultiHead(SIZE, HEADS)
        self.output = nn.Linear(SIZE, 2)

    def forward(self, strings: Tensor) -> Tensor:
        seen = self.attention(self.embedding(strings), mask=Causal())
        return self.output(seen)  # (string, position, symbol)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "RNN": lambda: RecurrentModel("rnn"),
    "LSTM": lambda: RecurrentModel("lstm"),
    "attention": AttentionModel,
}
LOSS_AT = {"last": slice(-1, None), "every": slice(None)}
"""The positions whose prediction enters the loss."""


def strings(length: int) -> tuple[Tensor, Tensor]:
    """A A … A and B A … A, and at each position whether a B has been seen; both (string, position).

    With one B at most, and that in the first place, there are no others.
    """
    symbols = torch.full((2, length), A)
    symbols[1, 0] = B
    return symbols, symbols.cummax(dim=1).values


@dataclass(frozen=True)
class TrainedModel:
    """A network after training, with its losses and its accuracy."""

    model: nn.Module
    losses: tuple[float, ...]  # step by step
    accuracy: float  # at the last position


def train(name: str, loss_at: str, length: int, seed: int, steps: int) -> TrainedModel:
    """Train one of MODELS on the two strings of a length, with the loss at these positions."""
    with fixed_seed(seed):
        model = MODELS[name]()
        optimizer = torch.optim.Adam(model.parameters(), lr=RATE, fused=True)
        symbols, targets = strings(length)
        targets = targets[:, LOSS_AT[loss_at]].flatten()
        losses = []
        for _ in range(steps):
            logits = model(symbols)[:, LOSS_AT[loss_at]]  # (string, position, symbol)
            loss = F.cross_entropy(logits.flatten(0, 1), targets)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            losses.append(loss.item())
        return TrainedModel(model, tuple(losses), accuracy(model, length))


@torch.no_grad()
def accuracy(model: nn.Module, length: int) -> float:
    """The share of strings whose next symbol is predicted.

    Two probabilities that agree to a hundredth are no decision, whichever is ahead in the eighth
    digit: such a string counts half, as a coin would have it.
    """
    symbols, targets = strings(length)
    probabilities = model(symbols)[:, -1].softmax(dim=-1)  # (string, symbol)
    right = probabilities.gather(1, targets[:, -1:]).squeeze(1)
    points = torch.where((right - 0.5).abs() < 0.01, 0.5, (right > 0.5).float())
    return points.mean().item()


@torch.no_grad()
def weights_of_last(model: nn.Module, length: int) -> Tensor:
    """The attention weights of the last symbol of B A … A, (head, symbol)."""
    symbols, _ = strings(length)
    with watch(model) as seen:
        model(symbols)
    return seen["attention"][-1].weights_of(rows=-1)[1, :, 0]


def weight_on_b(length: int) -> float:
    """eˢ/(eˢ + n − 1): what one head with q = [0, s] gives to the one B among n symbols."""
    keys = double([[1.0, 0.0]]).repeat(length, 1)
    keys[0] = double([0.0, 1.0])
    read = Attention(Dot())(double([[0.0, STRENGTH]]), keys, keys)
    return float(read.weights[0, 0])


def lesson(quick: bool = False) -> Lesson:
    plan = Plan(lengths=(5, 40), seeds=1, steps=120) if quick else Plan()
    began = time.perf_counter()
    runs = {
        (loss_at, name, length): [
            train(name, loss_at, length, s, plan.steps) for s in range(plan.seeds)
        ]
        for loss_at in LOSS_AT
        for name in MODELS
        for length in plan.lengths
    }
    seconds = time.perf_counter() - began
    longest = plan.lengths[-1]
    at_length = {name: runs["last", name, longest][0] for name in MODELS}
    on_b = weights_of_last(at_length["attention"].model, longest)[:, 0].tolist()
    shares = {length: weight_on_b(length) for length in LENGTHS_OF_ONE_HEAD}
    return Lesson(
        name="any-b",
        title=TITLES["any-b"],
        source=SELF_ATTENTION,
        steps=(
            step(
                "The next symbol is B if any B has been seen, else A. We train on the two strings "
                "that ask for a long memory: all As, and a B followed by As.",
                "A A A … A → A      B A A … A → B",
            ),
            step(
                f"An RNN, an LSTM and one layer of self-attention, {SIZE} wide, with {plan.steps} "
                f"steps of Adam each. Accuracy at the last position, mean of {plan.seeds} "
                f"{'seed' if plan.seeds == 1 else 'seeds'}; 0.50 is chance, and a network that "
                "has not made up its mind counts as a coin.",
                *_accuracies(runs, plan),
            ),
            step(
                "With a loss at the last position only, the recurrent networks must carry the B "
                "through every step, and over many steps no gradient comes back to tell them so. "
                "For attention the B is one step away, at any length.",
                *(
                    f"{name}, {longest} symbols: loss {trained.losses[0]:.3f} → "
                    f"{trained.losses[-1]:.3f}"
                    for name, trained in at_length.items()
                ),
                f"(a coin has ln 2 = {math.log(2):.3f})",
            ),
            step(
                "With a loss at every position, the B is first asked for right where it stands, "
                "then one step on, then two, and a plain RNN can learn to hold it.",
                *(
                    f"{name}, {longest} symbols: accuracy {_mean(runs['last', name, longest]):.2f} "
                    f"with the loss at the last position, "
                    f"{_mean(runs['every', name, longest]):.2f} with it at every one"
                    for name in ("RNN", "LSTM")
                ),
            ),
            step(
                f"Where the trained attention looks from the last of {longest} symbols: the share "
                "of each head that falls on the B in the first place.",
                "  ".join(f"head {head}: {share:.3f}" for head, share in enumerate(on_b)),
            ),
            step(
                f"A softmax has its own limit. One head with q = [0 s], s = {STRENGTH:g}, gives "
                "the B eˢ/(eˢ + n − 1), and enough As outvote it.",
                *table([("n", "on the B"), *((f"{n:,}", f"{w:.3f}") for n, w in shares.items())]),
            ),
            step(
                "Read the table with care. There are only these two strings of each length, so "
                "it tells what can be learned, not what carries over to others. And the settings, "
                f"{HEADS} heads and gradients clipped at {CLIP}, were chosen by trying: with one "
                "head attention stays at chance on some seeds, and with looser clipping so does an "
                "RNN with its loss at every position.",
            ),
            step(f"Trained {sum(map(len, runs.values()))} networks in {seconds:.0f} seconds."),
        ),
        numbers={
            "plan": {"lengths": list(plan.lengths), "seeds": plan.seeds, "steps": plan.steps},
            "accuracy": [
                {
                    "loss_at": loss_at,
                    "model": name,
                    "length": length,
                    "accuracy": _mean(models),
                    "each": [trained.accuracy for trained in models],
                    "final_loss": [trained.losses[-1] for trained in models],
                }
                for (loss_at, name, length), models in runs.items()
            ],
            "head_on_b": {"length": longest, "weights": on_b},
            "one_head": [{"n": n, "weight_on_b": w} for n, w in shares.items()],
            "seconds": seconds,
            "as_written": {"claim": "a B followed by many As is hard for RNNs to predict"},
        },
        slip=(
            "the lecture calls B A A … A hard for RNNs; that holds when the loss is taken at the "
            "last position only. With a loss at every step, as in a language model, a plain RNN "
            "can learn it."
        ),
        looks=(_look(runs["last", "attention", plan.lengths[0]][0].model, plan.lengths[0]),),
        curves=(
            Curves(
                title=f"Loss at the last of {longest} symbols",
                x_label="step of training",
                y_label="loss",
                x=tuple(float(n) for n in range(plan.steps)),
                series={name: trained.losses for name, trained in at_length.items()},
            ),
        ),
    )


def _mean(runs: list[TrainedModel]) -> float:
    return sum(trained.accuracy for trained in runs) / len(runs)


def _accuracies(
    runs: dict[tuple[str, str, int], list[TrainedModel]], plan: Plan
) -> tuple[str, ...]:
    titles = {"last": "loss at the last position", "every": "loss at every position"}
    rows = [("", "length", *map(str, plan.lengths))]
    for loss_at, title in titles.items():
        for name in MODELS:
            cells = [f"{_mean(runs[loss_at, name, length]):.2f}" for length in plan.lengths]
            rows.append((title, name, *cells))
            title = ""
    return table(rows)


def _look(model: nn.Module, length: int) -> Look:
    return Look.of_weights(
        weights_of_last(model, length).unsqueeze(1),  # (head, 1, symbol)
        path=f"the last of {length} symbols looks back",
        queries=["A"],
        keys=["B", *["A"] * (length - 1)],
    )
