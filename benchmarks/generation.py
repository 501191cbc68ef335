"""python -m benchmarks.generation: GPT-2 124 M writes, against transformers and CTranslate2.

Greedy, a prompt of 32 tokens and 128 new ones, in batches of 1 and 8, float32 and 8 bits. The
weights are random, which takes as long as any others; all read the same ones, and in float32 regard
and transformers must say the same words. Each competitor has a process of its own; they take turns,
medians are compared, and beside them stands the share of the machine's memory bandwidth that
float32 at batch 1 comes to: every weight is read once for each word. CTranslate2 is left out where
it is not installed (pip install -c constraints.txt ctranslate2). `--cpu-time` compares the
processor time of one thread, for a machine with other work to do.

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
from torch import Tensor
from torch.nn import functional as F

import regard
from benchmarks.racing import Row, compete, print_table, race_apart, rate_row
from regard.data.batches import Words
from regard.decoding import DecodingConfig, decode, packed, prepare_prompts
from regard.decoding.config import Weights
from regard.decoding.packed import pack

VOCABULARY, PROMPT, NEW = 50257, 32, 128
ROUNDS = 5
TRAINED = "shakespeare-char-better"
BARS = {
    1: {
        ("transformers", "float32"): 1.2,
        ("CTranslate2", "float32"): 1.0,
        ("CTranslate2", "int8"): 1.2,
    },
    8: {
        ("transformers", "float32"): 1.3,
        ("CTranslate2", "float32"): 1.0,
        ("CTranslate2", "int8"): 1.5,
    },
}
"""What is asked for, by batch."""


def make_peer(folder: Path) -> None:
    """transformers' GPT-2 with random weights, saved for all."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    GPT2LMHeadModel(GPT2Config()).eval().save_pretrained(folder)


def make_ctranslate2(folder: Path) -> bool:
    """The same weights for CTranslate2, in both precisions, if it is installed."""
    try:
        import ctranslate2
    except ImportError:
        return False
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
    for kind in ("float32", "int8"):
        converter.convert(str(folder / kind), quantization=kind)
    return True


def make_prompts(batch: int) -> Tensor:
    return torch.randint(VOCABULARY, (batch, PROMPT), generator=torch.Generator().manual_seed(1))


Writer = Callable[[Tensor], list[list[int]]]
"""Prompts (batch, PROMPT) → the new words of each."""


def our_writer(folder: Path, kind: Weights) -> Writer:
    model = regard.load(folder).model
    config = DecodingConfig(longest=NEW, weights=kind)

    def write(prompts: Tensor) -> list[list[int]]:
        batch, first = prepare_prompts(prompts.tolist(), 0)
        return [list(best.ids) for (best, *_) in decode(model, batch, first, config)]

    return write


def transformers_writer(folder: Path, _kind: str) -> Writer:
    from transformers import GPT2LMHeadModel

    model = GPT2LMHeadModel.from_pretrained(folder).eval()
    options = {"do_sample": False, "max_new_tokens": NEW, "min_new_tokens": NEW, "pad_token_id": 0}

    def write(prompts: Tensor) -> list[list[int]]:
        mask = torch.ones_like(prompts)
        answers: Tensor = model.generate(prompts, attention_mask=mask, **options)
        return answers[:, PROMPT:].tolist()

    return write


def ctranslate2_writer(folder: Path, kind: str) -> Writer:
    import ctranslate2

    generator = ctranslate2.Generator(
        str(folder / kind),
        device="cpu",
        compute_type=kind,
        intra_threads=torch.get_num_threads(),
    )
    options = {"max_length": NEW, "min_length": NEW, "sampling_topk": 1}

    def write(prompts: Tensor) -> list[list[int]]:
        tokens = [[str(i) for i in row] for row in prompts.tolist()]
        answers = generator.generate_batch(tokens, include_prompt_in_result=False, **options)
        return [each.sequences_ids[0] for each in answers]

    return write


WRITERS: dict[str, Callable[[Path, Any], Writer]] = {
    "regard": our_writer,
    "transformers": transformers_writer,
    "CTranslate2": ctranslate2_writer,
}


def competitor(name: str) -> tuple[Writer, Tensor]:
    """Who, the weights, the batch and the folder they lie in, as `race_apart` hands it on."""
    who, kind, batch, folder = name.split(" ", 3)
    return WRITERS[who](Path(folder), kind), make_prompts(int(batch))


def measure_bandwidth() -> float:
    """Bytes a second that all threads read of numbers far larger than the caches."""
    numbers, times = torch.ones(1 << 27), []
    for _ in range(7):
        started = time.perf_counter()
        numbers.sum()
        times.append(time.perf_counter() - started)
    return 4 * numbers.numel() / statistics.median(times)


def speed_rows(
    batch: int, folder: Path, with_ctranslate2: bool, threads: int, clock: str
) -> list[Row]:
    """New tokens of a row a second, the median of each, taking turns."""
    peers = {"float32": ["transformers"], "int8": []}
    if with_ctranslate2:
        peers = {kind: [*names, "CTranslate2"] for kind, names in peers.items()}
    entrants = [(who, kind) for kind, names in peers.items() for who in ("regard", *names)]
    names = [f"{who} {kind} {batch} {folder}" for who, kind in entrants]
    times = race_apart("benchmarks.generation", names, threads, ROUNDS, clock)
    rates = {each: 1000 * NEW / took for each, took in zip(entrants, times, strict=True)}
    bars = BARS[batch]
    rows = [
        rate_row(f"batch {batch}, {kind} : {who}", rates["regard", kind], rate, "tokens/s", bar)
        for (who, kind), rate in rates.items()
        if (bar := bars.get((who, kind)))
    ]
    if batch == 1:
        size = sum(each.stat().st_size for each in folder.glob("*.safetensors"))
        share = rates["regard", "float32"] * size / measure_bandwidth()
        rows.append(Row("float32, of the bandwidth", f"{share:.0%}", "", "", "", True))
    return rows


def check_words(folder: Path) -> None:
    """In float32 all say the same: what is raced is one task."""
    for batch in BARS:
        prompts = make_prompts(batch)
        ours, theirs = (make(folder, "float32")(prompts) for make in list(WRITERS.values())[:2])
        if ours != theirs:
            raise SystemExit("regard and transformers do not say the same words")


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


def compare(threads: int, clock: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_peer(folder)
        others = make_ctranslate2(folder)
        check_words(folder)
        rows = [row for batch in BARS for row in speed_rows(batch, folder, others, threads, clock)]
    print_table(f"GPT-2 124 M, greedy, {PROMPT} + {NEW} tokens, {threads} threads", rows)
    try:
        print_table("what 8 bits cost", [quality_row()])
    except ValueError as reason:  # the data of a language model of the zoo are not at hand
        print(f"what 8 bits cost was not measured: {reason}")


def main() -> None:
    match sys.argv[1:]:
        case ["--compete", name, threads, *clock]:
            torch.set_num_threads(int(threads))
            write, prompts = competitor(name)
            compete(lambda: write(prompts), 1, *clock, wake=False)
        case ["--cpu-time"]:
            compare(1, "cpu")
        case _:
            compare(torch.get_num_threads(), "wall")


if __name__ == "__main__":
    main()
