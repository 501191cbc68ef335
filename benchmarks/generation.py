"""python -m benchmarks.generation: GPT-2 124 M writes, against transformers and CTranslate2.

Greedy, a prompt of 32 tokens and 128 new ones, in batches of 1 and 8, float32 and 8 bits. The
weights are random, which takes as long as any others; all read the same ones, and in float32 regard
and transformers must say the same words. The competitors take turns, medians are compared, and
beside them stands the share of the machine's memory bandwidth that float32 at batch 1 comes to:
every weight is read once for each word. CTranslate2 is left out where it is not installed
(pip install -c constraints.txt ctranslate2). `--cpu-time` compares the processor time of one
thread, for a machine with other work to do.

What 8 bits cost is measured on a trained model: a language model of the zoo.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import regard
from benchmarks.racing import Row, print_table, rate_row
from regard.data.batches import Words
from regard.decoding import DecodingConfig, decode, packed, prepare_prompts
from regard.decoding.packed import pack

VOCABULARY, PROMPT, NEW = 50257, 32, 128
ROUNDS = 5
TRAINED = "shakespeare-char-better"
Clock = Callable[[], float]


def make_peer(folder: Path) -> Any:
    """transformers' GPT-2 with random weights, saved for the others."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config()).eval()
    model.save_pretrained(folder)
    return model


def make_ctranslate2(folder: Path) -> dict[str, Any]:
    """The same weights in CTranslate2, in both precisions; empty where it is not installed."""
    try:
        import ctranslate2
    except ImportError:
        return {}
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    names = {str(i): i for i in range(VOCABULARY)}
    words = Tokenizer(WordLevel(names, unk_token="0"))
    # Its end is never said before the answer is as long as all answers are made here.
    fast = PreTrainedTokenizerFast(
        tokenizer_object=words, bos_token="0", eos_token="0", unk_token="0"
    )
    fast.save_pretrained(folder)
    converter = ctranslate2.converters.TransformersConverter(str(folder))
    made = {}
    for kind in ("float32", "int8"):
        place = folder / f"ctranslate2-{kind}"
        converter.convert(str(place), quantization=kind)
        made[kind] = ctranslate2.Generator(
            str(place), device="cpu", compute_type=kind, intra_threads=torch.get_num_threads()
        )
    return made


def write_ours(model: nn.Module, prompts: Tensor, weights: Any) -> list[list[int]]:
    config = DecodingConfig(longest=NEW, weights=weights)
    batch, first = prepare_prompts(prompts.tolist(), 0)
    return [list(best.ids) for (best, *_) in decode(model, batch, first, config)]


def write_theirs(model: Any, prompts: Tensor) -> list[list[int]]:
    options = {"do_sample": False, "max_new_tokens": NEW, "min_new_tokens": NEW, "pad_token_id": 0}
    mask = torch.ones_like(prompts)
    return model.generate(prompts, attention_mask=mask, **options)[:, PROMPT:].tolist()


def write_ctranslate2(generator: Any, prompts: Tensor) -> None:
    tokens = [[str(i) for i in row] for row in prompts.tolist()]
    options = {"max_length": NEW, "min_length": NEW, "sampling_topk": 1}
    generator.generate_batch(tokens, include_prompt_in_result=False, **options)


def race(competitors: dict[str, Callable[[], object]], clock: Clock) -> dict[str, float]:
    """New tokens of a row a second, the median of each, taking turns."""
    times: dict[str, list[float]] = {name: [] for name in competitors}
    for turn in range(ROUNDS + 1):
        for name, run in competitors.items():
            started = clock()
            run()
            if turn:  # the first is to get warm, and to lay weights out
                times[name].append(clock() - started)
    return {name: NEW / statistics.median(each) for name, each in times.items()}


def measure_bandwidth(clock: Clock) -> float:
    """Bytes a second that a product of one vector with a matrix larger than the cache reads."""
    matrix, vector = torch.randn(1 << 12, 1 << 15), torch.randn(1, 1 << 12)
    times = []
    for _ in range(7):
        started = clock()
        vector @ matrix
        times.append(clock() - started)
    return 4 * matrix.numel() / statistics.median(times)


def speed_rows(
    batch: int, folder: Path, peer: Any, others: dict[str, Any], clock: Clock
) -> list[Row]:
    model = regard.load(folder).model
    prompts = torch.randint(VOCABULARY, (batch, PROMPT), generator=torch.Generator().manual_seed(1))
    if write_ours(model, prompts, "float32") != write_theirs(peer, prompts):
        raise SystemExit("regard and transformers do not say the same words")
    competitors: dict[str, Callable[[], object]] = {
        "ours float32": lambda: write_ours(model, prompts, "float32"),
        "ours int8": lambda: write_ours(model, prompts, "int8"),
        "transformers": lambda: write_theirs(peer, prompts),
    }
    for kind, generator in others.items():
        competitors[f"CTranslate2 {kind}"] = lambda g=generator: write_ctranslate2(g, prompts)
    rates = race(competitors, clock)
    fast, quick = rates["ours float32"], rates["ours int8"]
    bar, bar8 = (1.2, 1.2) if batch == 1 else (1.3, 1.5)
    rows = [
        rate_row(
            f"batch {batch}, float32 : transformers", fast, rates["transformers"], "tokens/s", bar
        )
    ]
    if others:
        rate = rates["CTranslate2 float32"]
        rows.append(rate_row(f"batch {batch}, float32 : CTranslate2", fast, rate, "tokens/s", 1.0))
        rate = rates["CTranslate2 int8"]
        rows.append(
            rate_row(f"batch {batch}, int8 : CTranslate2 int8", quick, rate, "tokens/s", bar8)
        )
    if batch == 1:
        size = 4 * sum(p.numel() for p in model.parameters())
        share = fast * size / measure_bandwidth(clock)
        rows.append(Row("float32, of the bandwidth", f"{share:.0%}", "", "", "", True))
    return rows


@torch.no_grad()
def quality_row() -> Row:
    """What 8 bits do to a trained model's loss, every product by rounded matrices."""
    packed.MAX_FEW_ROWS = sys.maxsize  # or whole windows would be read as trained, like prompts
    run = regard.load(TRAINED)
    corpus = run.task.read("valid")
    feed = run.task.scoring_feed(corpus, run.resources)
    losses = []
    for kind in ("float32", "int8"):
        model = pack(run.model, kind)  # type: ignore[arg-type]
        total, count = 0.0, 0
        for index in range(feed.batches(0)):
            batch: Words = feed.batch(0, index)
            logits, mask = model(batch), batch.loss_mask
            total += float(F.cross_entropy(logits[mask], batch.targets[mask], reduction="sum"))
            count += int(mask.sum())
        losses.append(torch.tensor(total / count).exp().item())
    fp32, int8 = losses
    ratio = int8 / fp32
    return Row(
        f"perplexity of {TRAINED}",
        f"{int8:.4f}",
        f"{fp32:.4f}",
        f"{ratio:.4f} ×",
        "≤ 1.01 ×",
        ratio <= 1.01,
    )


def main() -> None:
    clock = time.perf_counter
    if "--cpu-time" in sys.argv:
        torch.set_num_threads(1)
        clock = time.process_time
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        peer, others = make_peer(folder), make_ctranslate2(folder)
        rows = [row for batch in (1, 8) for row in speed_rows(batch, folder, peer, others, clock)]
    title = f"GPT-2 124 M, greedy, {PROMPT} + {NEW} tokens, {torch.get_num_threads()} threads"
    print_table(title, rows)
    try:
        print_table("what 8 bits cost", [quality_row()])
    except ValueError as reason:  # the data of a language model of the zoo are not at hand
        print(f"what 8 bits cost was not measured: {reason}")


if __name__ == "__main__":
    main()
