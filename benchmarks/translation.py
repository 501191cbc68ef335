"""The Transformer against torch's and transformers': training, and translation with a beam of 5.

    python -m benchmarks.translation [--cpu-time]

Training: target tokens a second of a whole step (forward, backward, clipping, optimizer), 3 + 3
layers, 256 wide, 8,000 units, dropout and label smoothing on. The peer is `nn.Transformer` with
`F.cross_entropy` and the default AdamW, on the same batches, with dropout in the same places.

Translation: 1,000 sentences, each with as many words to say as a Multi30k reference of its length
would have. The peer is `MarianMTModel.generate` of the same sizes, 32 sentences at once: in the
order they come in, and sorted by length. Ours sorts them itself, as `regard translate` does.

Each competitor has a process of its own, since `regard train` asks the C library for things that
would help the peer, too. `--cpu-time` counts what one thread computes instead of what a clock
shows: for a machine that others use at the same time.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.racing import Row, compete, print_table, race_apart, rate_row
from benchmarks.translators import END, PAD, START, sentences
from regard.attention import Sinusoidal
from regard.data.batches import Pairs
from regard.data.buckets import Translations, pad_rows
from regard.decoding import DecodingConfig, decode
from regard.decoding.packed import pack
from regard.models.transformer import Transformer, TransformerConfig, TransformerState
from regard.tasks.target_words import NextTargetWord
from regard.training.memory import keep_freed_memory
from regard.training.optimizers import clip_gradients, gradient_norm

LAYERS, SIZE, HEADS, INNER, VOCABULARY = 3, 256, 8, 1024, 8000
RATE, SMOOTHING, TOKENS, CLIP = 0.1, 0.1, 2048, 1.0
SENTENCES, BEAM = 1000, 5
AT_ONCE = 32  # sentences the peer is given: with more, or fewer, it is slower
AVX512 = torch.backends.cpu.get_cpu_capability() == "AVX512"
TRAINING_BAR = 2.0 if AVX512 else 1.4  # where products are slow they weigh more
CONFIG = TransformerConfig(
    vocabulary_size=VOCABULARY,
    layers=LAYERS,
    model_size=SIZE,
    heads=HEADS,
    feedforward_size=INNER,
    dropout=RATE,
    attention_dropout=RATE,  # `nn.Transformer` has one rate for all
    feedforward_dropout=RATE,
)


class Peer(nn.Module):
    """The same model around torch's own."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, SIZE)
        self.positions = Sinusoidal(SIZE, 512)
        self.dropout = nn.Dropout(RATE)
        self.transformer = nn.Transformer(
            SIZE, HEADS, LAYERS, LAYERS, INNER, RATE, batch_first=True
        )
        self.output = nn.Linear(SIZE, VOCABULARY, bias=False)
        self.output.weight = self.words.weight

    def embed(self, ids: Tensor) -> Tensor:
        vectors: Tensor = self.dropout(self.positions(self.words(ids) * math.sqrt(SIZE)))
        return vectors

    def forward(self, batch: Pairs) -> Tensor:
        length = batch.target_input.shape[1]
        padding = ~batch.source_mask
        read = self.transformer(
            self.embed(batch.source),
            self.embed(batch.target_input),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(length),
            src_key_padding_mask=padding.float().masked_fill(padding, -math.inf),
            memory_key_padding_mask=padding.float().masked_fill(padding, -math.inf),
            tgt_is_causal=True,
        )
        logits: Tensor = self.output(read)
        return logits


def training_batches(count: int) -> list[Pairs]:
    feed = Translations(sentences(2000, VOCABULARY), START, END, PAD, TOKENS, seed=1)
    return [feed.batch(0, index) for index in range(count)]


def train_ours() -> Callable[[], object]:
    keep_freed_memory()
    model = Transformer(CONFIG)
    objective = NextTargetWord(model, SMOOTHING)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    batches = training_batches(8)

    def steps() -> None:
        for batch in batches:
            (objective(batch).parts["loss"] / batch.tokens).backward()
            clip_gradients(model, CLIP, gradient_norm(model))
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    return steps


def train_peer() -> Callable[[], object]:
    model = Peer()
    optimizer = torch.optim.AdamW(model.parameters())
    batches = training_batches(8)

    def steps() -> None:
        for batch in batches:
            wanted = batch.target_output.masked_fill(~batch.target_mask, -100)
            logits = model(batch).flatten(0, 1)
            F.cross_entropy(logits, wanted.flatten(), label_smoothing=SMOOTHING).backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    return steps


def translation_lengths(sources: Sequence[Sequence[int]]) -> Tensor:
    """How many words are said of each source, the end among them: 8 percent more than it has, give
    or take 2.3, as in Multi30k (test_2016_flickr, 8,000 units)."""
    lengths = torch.tensor([len(source) for source in sources])
    spread = torch.randn(len(sources), generator=torch.Generator().manual_seed(6))
    return (1.08 * lengths + 2.3 * spread).round().clamp(min=2).long()


def translation_sources() -> tuple[list[list[int]], Tensor]:
    """Sentences about as long as Multi30k's, and how many words are said of each."""
    generator = torch.Generator().manual_seed(5)
    lengths = (13.9 + 4.6 * torch.randn(SENTENCES, generator=generator)).round().clamp(4, 40)
    sources = [
        torch.randint(3, VOCABULARY, (int(length),), generator=generator).tolist()
        for length in lengths
    ]
    return sources, translation_lengths(sources)


class SaysItsLength:
    """A model that ends every sentence after the words it is given, for weights know no end."""

    def __init__(self, model: Transformer, lengths: Tensor):
        self.model, self.lengths = model, lengths

    def start(self, batch: Pairs) -> TransformerState:
        return self.model.start(batch)

    def step(self, ids: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        logits, after = self.model.step(ids, state)
        over = self.lengths[state.sentences] == after.length
        logits[:, END] = torch.where(over, 1e4, -1e4)
        return logits, after


def translate_ours() -> Callable[[], object]:
    model = Transformer(CONFIG).eval()
    sources, lengths = translation_sources()
    feed = Translations([(source, []) for source in sources], START, END, PAD, TOKENS)
    config = DecodingConfig(method="beam", beam=BEAM, longest=80)

    @torch.no_grad()
    def translate() -> None:
        for places in feed.buckets.plan(0):
            batch = feed.collate([feed.pairs[place] for place in places])
            saying = SaysItsLength(pack(model), lengths[list(places)])
            first = torch.full((len(batch),), START)
            answers = decode(saying, batch, first, config, end=END, never=[PAD, START])
            assert [len(best.ids) for best, *_ in answers] == lengths[list(places)].tolist()

    return translate


def translate_peer(sort: bool) -> Callable[[], object]:
    from transformers import (
        LogitsProcessor,
        LogitsProcessorList,
        MarianConfig,
        MarianMTModel,
    )
    from transformers.utils import logging

    logging.set_verbosity_error()
    config = MarianConfig(
        vocab_size=VOCABULARY,
        d_model=SIZE,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=INNER,
        decoder_ffn_dim=INNER,
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=PAD,
        eos_token_id=END,
        decoder_start_token_id=PAD,
        forced_eos_token_id=None,
    )
    model = MarianMTModel(config).eval()
    sources, lengths = translation_sources()
    order = torch.tensor([len(source) for source in sources]).argsort() if sort else None
    places = torch.arange(SENTENCES) if order is None else order

    class EndsAtLength(LogitsProcessor):  # type: ignore[misc]
        def __init__(self, lengths: Tensor):
            self.lengths = lengths.repeat_interleave(BEAM)

        def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
            over = self.lengths == input_ids.shape[1]
            scores[:, END] = torch.where(over, 1e4, -1e4)
            return scores

    def translate() -> None:
        for some in places.split(AT_ONCE):
            source, mask = pad_rows([sources[place] for place in some], PAD)
            said = model.generate(
                source,
                attention_mask=mask,
                num_beams=BEAM,
                do_sample=False,
                max_new_tokens=80,
                logits_processor=LogitsProcessorList([EndsAtLength(lengths[some])]),
            )
            assert said.shape == (len(some), int(lengths[some].max()) + 1)

    return translate


COMPETITORS = {
    "train-regard": train_ours,
    "train-torch": train_peer,
    "translate-regard": translate_ours,
    "translate-transformers": partial(translate_peer, sort=False),
    "translate-sorted": partial(translate_peer, sort=True),
}


def rows(threads: int, clock: str) -> list[Row]:
    module = "benchmarks.translation"
    tokens = sum(batch.tokens for batch in training_batches(8))
    ours, peer = race_apart(module, ["train-regard", "train-torch"], threads, 9, clock)
    speeds = (1000 * tokens / each for each in (ours, peer))
    trained = rate_row(
        "training, 3 + 3 layers (nn.Transformer)", *speeds, "target tokens/s", TRAINING_BAR
    )
    names = ["translate-regard", "translate-transformers", "translate-sorted"]
    ours, *peers = (
        1000 * SENTENCES / each for each in race_apart(module, names, threads, 5, clock)
    )
    whats = ("beam 5, 1,000 sentences as they come (Marian)", "… sorted by length (Marian)")
    said = [
        rate_row(what, ours, peer, "sentences/s", 3.0)
        for what, peer in zip(whats, peers, strict=True)
    ]
    return [trained, *said]


def main() -> None:
    match sys.argv[1:]:
        case ["--compete", name, threads, *clock]:
            torch.manual_seed(0)
            torch.set_num_threads(int(threads))
            compete(COMPETITORS[name](), 1, *clock)
        case ["--cpu-time"]:
            print_table(f"translation, torch {torch.__version__}, CPU time", rows(1, "cpu"))
        case _:
            count = torch.get_num_threads()
            title = f"translation, torch {torch.__version__}, {count} threads"
            print_table(title, rows(count, "wall"))


if __name__ == "__main__":
    main()
