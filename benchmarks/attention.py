"""python -m benchmarks.attention: the core against torch's own kernel and the plain formula.

Measure on a quiet machine; the whole table takes about three minutes on two cores.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.memory import measured, peak_megabytes
from benchmarks.racing import Row, below, both_ways, compared, forward, print_table, race
from regard.attention import (
    Additive,
    Attention,
    Causal,
    Cosine,
    Dot,
    General,
    MultiHead,
    Padding,
    ScaledDot,
    Score,
)

HEADS, SIZE = 8, 64


def inputs(tokens: int, batch: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    shape = (batch, HEADS, tokens, SIZE)
    q, k, v = (torch.randn(shape, requires_grad=True) for _ in range(3))
    return q, k, v


def against_the_kernel(tokens: int) -> list[Row]:
    """Each inner-product score against the bare kernel on what the score makes of its inputs."""
    q, k, v = inputs(tokens)
    scores: list[tuple[Score, float]] = [
        (ScaledDot(), 1.05),
        (Dot(), 1.15),
        (General(SIZE, SIZE), 1.15),
        (Cosine(5.0), 1.15),
    ]
    rows = []
    for score, bar in scores:
        attention = Attention(score)

        def ours(attention: Attention = attention) -> Tensor:
            return attention(q, k, v).context

        def bare(score: Score = score) -> Tensor:
            scale = score.scale(SIZE)
            return F.scaled_dot_product_attention(
                score.transform_queries(q), score.transform_keys(k), v, scale=scale
            )

        for way, name in ((forward, "forward"), (both_ways, "forward+backward")):
            mine, theirs = race([way(ours), way(bare)], rounds=21)
            what = f"{type(score).__name__}, {tokens} tokens, {name}"
            rows.append(compared(what, mine, theirs, at_most=bar))
    return rows


def few_tokens(tokens: int) -> list[Row]:
    """Where explicit products may beat the kernel: no slower than the quicker of the two."""
    q, k, v = inputs(tokens, batch=16)
    attention = Attention(ScaledDot())
    rows = []
    for way, name in ((forward, "forward"), (both_ways, "forward+backward")):
        mine, fused, explicit = race(
            [
                way(lambda: attention(q, k, v).context),
                way(lambda: F.scaled_dot_product_attention(q, k, v)),
                way(lambda: ((q * SIZE**-0.5) @ k.mT).softmax(dim=-1) @ v),
            ],
            seconds=2.0,
            rounds=21,
        )
        what = f"ScaledDot, 16 × {tokens} tokens, {name} (best of kernel, explicit)"
        rows.append(compared(what, mine, min(fused, explicit), at_most=1.2))
    return rows


def additive(tokens: int) -> list[Row]:
    torch.manual_seed(0)
    attention = Attention(Additive(SIZE, SIZE, SIZE))
    score = attention.score
    assert isinstance(score, Additive)
    q, k, v = (torch.randn(1, tokens, SIZE, requires_grad=True) for _ in range(3))

    def explicit() -> Tensor:
        pairs = torch.tanh(score.query(q).unsqueeze(2) + score.key(k).unsqueeze(1))
        return (pairs @ score.direction).softmax(dim=-1) @ v

    rows = []
    bars = (4.0, 1.7) if tokens > 128 else (1.0, 1.0)
    for (way, name), bar in zip(
        ((forward, "forward"), (both_ways, "forward+backward")), bars, strict=True
    ):
        mine, theirs = race([way(lambda: attention(q, k, v).context), way(explicit)], rounds=5)
        what = f"Additive, {tokens} × {tokens} × {SIZE}, {name} (explicit way)"
        rows.append(compared(what, mine, theirs, at_least=bar))
    return rows


def multi_head() -> list[Row]:
    ours = MultiHead(512, 8)
    theirs = nn.MultiheadAttention(512, 8, batch_first=True)
    x = torch.randn(16, 256, 512, requires_grad=True)
    mine, peer = race(
        [both_ways(lambda: ours(x)), both_ways(lambda: theirs(x, x, x, need_weights=False)[0])],
        seconds=12.0,
        rounds=15,
    )
    what = "MultiHead, 16 × 256 × 512, forward+backward (nn.MultiheadAttention)"
    return [compared(what, mine, peer, at_least=1.0)]


def rows_on_demand() -> list[Row]:
    q, k, v = (x.detach() for x in inputs(8192))
    read = Attention(ScaledDot())(q, k, v, Causal())
    (mine,) = race([lambda: read.weights_of(heads=5, rows=slice(4000, 4064))], seconds=1.0)
    return [below("64 rows of one head at 8,192 tokens, on demand", mine, 50, "ms")]


def memory_cases(tokens: int) -> dict[str, Callable[[], object]]:
    attention, additive = Attention(ScaledDot()), Attention(Additive(SIZE, SIZE, SIZE))
    q, k, v = inputs(tokens)
    padded = Causal() & Padding(torch.tensor([tokens - tokens // 8]))
    wide = [torch.randn(1, tokens // 4, SIZE, requires_grad=True) for _ in range(3)]
    return {
        "no mask": forward(lambda: attention(q, k, v).context),
        "causal": forward(lambda: attention(q, k, v, Causal()).context),
        "causal & padding": forward(lambda: attention(q, k, v, padded).context),
        "causal & padding, both ways": both_ways(lambda: attention(q, k, v, padded).context),
        "additive": both_ways(lambda: additive(*wide).context),
    }


def memory() -> list[Row]:
    rows = []
    for case in memory_cases(64):
        used = peak_megabytes("benchmarks.attention", case)
        if case == "additive":
            rows.append(below("Additive, 2,048 × 2,048 × 64, both ways: peak", used, 64, "MB"))
        else:
            rows.append(below(f"8,192 tokens, 8 heads, {case}: peak", used, 300, "MB"))
    return rows


def help_page() -> list[Row]:
    times = []
    for _ in range(9):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "regard", "--help"], capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    return [below("regard --help", 1000 * sorted(times)[4], 300, "ms")]


def main() -> None:
    torch.manual_seed(0)
    if sys.argv[1:2] == ["--memory"]:
        memory_cases(64)[sys.argv[2]]()  # what torch loads at first use is not counted
        print(measured(memory_cases(8192)[sys.argv[2]]))
        return
    rows = [*against_the_kernel(512), *against_the_kernel(2048)]
    for tokens in (32, 64, 128):
        rows += few_tokens(tokens)
    rows += [*additive(2048), *additive(128), *multi_head(), *rows_on_demand(), *memory()]
    rows += help_page()
    print_table(f"attention, torch {torch.__version__}, {torch.get_num_threads()} threads", rows)


if __name__ == "__main__":
    main()
