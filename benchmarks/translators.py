"""Recurrent translators against the same models written step by step in plain PyTorch.

    python -m benchmarks.translators          on a quiet machine
    python -m benchmarks.translators --cpu    on a busy one: processor time of one thread

Training: target tokens a second of a whole step (forward, backward, clipping, optimizer) on the
same batches of mixed lengths, new ones in every turn, with dropout and label smoothing. Decoding:
beam 5 over 1,000 sentences; the peer takes one sentence at a time, its beam as a batch. The peer
projects its keys once a sentence and packs its padding, as a careful reader of the papers would.
Freed memory is kept, as `regard train` does, for both.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from benchmarks.racing import Row, print_table, race, rate_row
from regard.data.batches import Pairs
from regard.data.buckets import Translations
from regard.decoding import decode
from regard.decoding.config import DecodingConfig
from regard.models.bahdanau import Bahdanau, BahdanauConfig
from regard.models.luong import Luong, LuongConfig
from regard.tasks.target_words import NextTargetWord
from regard.training.memory import keep_freed_memory

START, END, PAD = 1, 2, 0
SHORTEST, LONGEST = 12, 16  # words of a translation: untrained models would end at once, or never


@dataclass(frozen=True)
class Sizes:
    """Of a translator, and of the batches it is trained on."""

    name: str
    vocabulary: int
    embedding: int
    hidden: int
    tokens: int


DESCRIPTIONS = Sizes("image descriptions", 6000, 200, 256, 2048)  # as in multi30k-bahdanau
WIDER = Sizes("64 sentences, 8,000 units", 8000, 256, 256, 1408)
WIDEST = Sizes("32 sentences, hidden 512", 8000, 256, 512, 704)
NUMBERS = Sizes("number names", 64, 64, 96, 1024)  # as in numbers-de and numbers-luong


class PlainBahdanau(nn.Module):
    """Additive attention on the previous state, one word after the other."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        vocabulary, embedding, hidden = sizes.vocabulary, sizes.embedding, sizes.hidden
        self.source_embedding = nn.Embedding(vocabulary, embedding)
        self.target_embedding = nn.Embedding(vocabulary, embedding)
        self.encoder = nn.GRU(embedding, hidden, bidirectional=True, batch_first=True)
        self.first = nn.Linear(hidden, hidden)
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.key = nn.Linear(2 * hidden, hidden, bias=False)
        self.direction = nn.Linear(hidden, 1, bias=False)
        self.cell = nn.GRUCell(embedding + 2 * hidden, hidden)
        self.pieces = nn.Linear(embedding + 3 * hidden, 2 * embedding)
        self.output = nn.Linear(embedding, vocabulary)
        self.dropout = nn.Dropout(0.3)

    def encode(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        words = self.dropout(self.source_embedding(source))
        packed = pack_padded_sequence(words, mask.sum(1), batch_first=True, enforce_sorted=False)
        outputs, ends = self.encoder(packed)
        memory = self.dropout(pad_packed_sequence(outputs, batch_first=True)[0])
        return memory, self.key(memory), torch.tanh(self.first(ends[1]))

    def step(
        self, ids: Tensor, state: Tensor, memory: Tensor, keys: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        word = self.dropout(self.target_embedding(ids))
        scores = self.direction(torch.tanh(self.query(state).unsqueeze(1) + keys)).squeeze(-1)
        weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)
        context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
        state = self.cell(torch.cat([word, context], dim=-1), state)
        pieces = self.pieces(torch.cat([state, word, context], dim=-1))
        readout = pieces.view(len(ids), -1, 2).max(dim=-1).values
        return self.output(self.dropout(readout)), state

    def forward(self, batch: Pairs) -> Tensor:
        memory, keys, state = self.encode(batch.source, batch.source_mask)
        logits = []
        for time_step in range(batch.target_input.shape[1]):
            ids = batch.target_input[:, time_step]
            said, state = self.step(ids, state, memory, keys, batch.source_mask)
            logits.append(said)
        return torch.stack(logits, dim=1)

    @torch.no_grad()
    def translate(self, source: Tensor, beam: int) -> list[int]:
        """Beam search for one sentence (1, source)."""
        mask = torch.ones_like(source, dtype=torch.bool)
        memory, keys, state = self.encode(source, mask)
        memory, keys = memory.expand(beam, -1, -1), keys.expand(beam, -1, -1)
        mask, state = mask.expand(beam, -1), state.expand(beam, -1)
        ids = torch.full((beam,), START)
        scores = torch.tensor([0.0] + [float("-inf")] * (beam - 1))
        said: list[list[int]] = [[] for _ in range(beam)]
        finished: list[tuple[float, list[int]]] = []
        for length in range(1, LONGEST + 1):
            logits, state = self.step(ids, state, memory, keys, mask)
            log_p = logits.log_softmax(dim=-1)
            if length <= SHORTEST:
                log_p[:, END] = float("-inf")
            totals = scores.unsqueeze(1) + log_p
            best, places = totals.flatten().topk(2 * beam)
            going = []
            for score, place in zip(best.tolist(), places.tolist(), strict=True):
                row, word = divmod(place, logits.shape[-1])
                if word == END:
                    finished.append((score / ((5 + length) / 6) ** 0.6, [*said[row], word]))
                elif len(going) < beam:
                    going.append((score, row, word))
            if len(finished) >= beam:
                break
            rows = torch.tensor([row for _, row, _ in going])
            said = [[*said[row], word] for _, row, word in going]
            ids = torch.tensor([word for _, _, word in going])
            scores = torch.tensor([score for score, _, _ in going])
            state = state[rows]
        return max(finished)[1] if finished else said[0]


class PlainLuong(nn.Module):
    """General attention on the current state, one word after the other, without input feeding."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        vocabulary, embedding, hidden = sizes.vocabulary, sizes.embedding, sizes.hidden
        self.source_embedding = nn.Embedding(vocabulary, embedding)
        self.target_embedding = nn.Embedding(vocabulary, embedding)
        self.encoder = nn.LSTM(embedding, hidden, num_layers=2, dropout=0.3, batch_first=True)
        self.cells = nn.ModuleList([nn.LSTMCell(embedding, hidden), nn.LSTMCell(hidden, hidden)])
        self.matrix = nn.Linear(hidden, hidden, bias=False)
        self.combine = nn.Linear(2 * hidden, hidden, bias=False)
        self.output = nn.Linear(hidden, vocabulary, bias=False)
        self.dropout = nn.Dropout(0.3)

    def forward(self, batch: Pairs) -> Tensor:
        lengths = batch.source_mask.sum(1)
        words = self.dropout(self.source_embedding(batch.source))
        packed = pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)
        outputs, (hidden, cell) = self.encoder(packed)
        memory = pad_packed_sequence(outputs, batch_first=True)[0]
        states = list(zip(hidden.unbind(0), cell.unbind(0), strict=True))
        logits = []
        for time_step in range(batch.target_input.shape[1]):
            below = self.dropout(self.target_embedding(batch.target_input[:, time_step]))
            for layer, step in enumerate(self.cells):
                states[layer] = step(below if layer == 0 else self.dropout(below), states[layer])
                below = states[layer][0]
            scores = torch.bmm(memory, self.matrix(below).unsqueeze(-1)).squeeze(-1)
            weights = scores.masked_fill(~batch.source_mask, float("-inf")).softmax(dim=-1)
            context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
            attentional = torch.tanh(self.combine(torch.cat([context, below], dim=-1)))
            logits.append(self.output(self.dropout(attentional)))
        return torch.stack(logits, dim=1)


def sentences(count: int, vocabulary: int, seed: int = 0) -> list[tuple[list[int], list[int]]]:
    """Pairs of about as many tokens as Multi30k has in a sentence."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(7, 23, (count, 2), generator=generator).tolist()
    return [
        tuple(torch.randint(3, vocabulary, (n,), generator=generator).tolist() for n in each)  # type: ignore[misc]
        for each in lengths
    ]


BATCHES_A_TURN = 6


def training_row(
    name: str,
    sizes: Sizes,
    ours: nn.Module,
    plain: nn.Module,
    at_least: float,
    clock: Callable[[], float],
) -> Row:
    """Whole training steps on batches of like lengths, as both would get them from a feed."""
    pairs = sentences(8000, sizes.vocabulary)
    feed = Translations(pairs, START, END, PAD, sizes.tokens, seed=1)
    batches = [feed.batch(0, index) for index in range(feed.batches(0))]
    # The same for both, and new in every turn: a feed does not bring a shape back soon either.
    turns = [batches[i : i + BATCHES_A_TURN] for i in range(0, len(batches), BATCHES_A_TURN)][:-1]
    tokens = sum(batch.tokens for turn in turns for batch in turn) / len(turns)
    objective = NextTargetWord(ours.train(), 0.1)
    quick = torch.optim.AdamW(ours.parameters(), fused=True)
    default = torch.optim.AdamW(plain.train().parameters())

    def step_ours(turns: Iterator[list[Pairs]]) -> None:
        for batch in next(turns):
            quick.zero_grad()
            (objective(batch).parts["loss"] / batch.tokens).backward()
            nn.utils.clip_grad_norm_(ours.parameters(), 1.0)
            quick.step()

    def step_plain(turns: Iterator[list[Pairs]]) -> None:
        for batch in next(turns):
            default.zero_grad()
            wanted = batch.target_output.masked_fill(~batch.target_mask, -100)
            F.cross_entropy(
                plain(batch).flatten(0, 1), wanted.flatten(), label_smoothing=0.1
            ).backward()
            nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
            default.step()

    competitors = [partial(step, cycle(turns)) for step in (step_ours, step_plain)]
    mine, theirs = (tokens / each * 1000 for each in race(competitors, rounds=9, clock=clock))
    return rate_row(f"{name}, {sizes.name}", mine, theirs, "target tokens/s", at_least)


@torch.no_grad()
def decoding_row(clock: Callable[[], float], count: int = 1000) -> Row:
    """Beam 5 over files of sentences: ours sorted by length and in batches."""
    sizes = DESCRIPTIONS
    ours = Bahdanau(bahdanau_config(sizes)).eval()
    plain = PlainBahdanau(sizes).eval()
    for model in (ours, plain):
        model.output.bias[END] = 2.0
    pairs = sentences(count, sizes.vocabulary, seed=5)
    config = DecodingConfig(method="beam", beam=5, shortest=SHORTEST, longest=LONGEST)
    feed = Translations(pairs, START, END, PAD, 2048)
    started = clock()
    said = 0
    for rows in feed.buckets.plan(0):
        batch = feed.collate([(pairs[i][0], []) for i in rows])
        first = torch.full((len(rows),), START)
        for hypotheses in decode(ours, batch, first, config, end=END, never=[PAD, START]):
            said += len(hypotheses[0].ids)
    mine = count / (clock() - started)
    started, told = clock(), 0
    some = pairs[: count // 5]
    for source, _ in some:
        told += len(plain.translate(torch.tensor([source]), 5))
    theirs = len(some) / (clock() - started)
    lengths = f"{said / count:.0f} and {told / len(some):.0f} words each"
    return rate_row(f"Bahdanau, beam 5, {lengths}", mine, theirs, "sentences/s", 3.0)


def bahdanau_config(sizes: Sizes) -> BahdanauConfig:
    return BahdanauConfig(
        vocabulary_size=sizes.vocabulary,
        embedding_size=sizes.embedding,
        hidden_size=sizes.hidden,
        attention_size=sizes.hidden,
        readout_size=sizes.embedding,
        dropout=0.3,
    )


def luong_config(sizes: Sizes) -> LuongConfig:
    return LuongConfig(
        vocabulary_size=sizes.vocabulary,
        embedding_size=sizes.embedding,
        hidden_size=sizes.hidden,
        layers=2,
        scope="global",
        input_feeding=False,
        dropout=0.3,
    )


def main() -> None:
    torch.manual_seed(0)
    keep_freed_memory()
    clock, kind = time.perf_counter, "seconds"
    if "--cpu" in sys.argv[1:]:
        torch.set_num_threads(1)
        clock, kind = time.process_time, "seconds of processor time"
    rows = []
    for sizes in (DESCRIPTIONS, WIDER, WIDEST, NUMBERS):
        pair = Bahdanau(bahdanau_config(sizes)), PlainBahdanau(sizes)
        rows.append(training_row("Bahdanau", sizes, *pair, 2.0, clock))
        luong = Luong(luong_config(sizes)), PlainLuong(sizes)
        rows.append(training_row("Luong, no input feeding", sizes, *luong, 5.0, clock))
    rows.append(decoding_row(clock))
    threads = torch.get_num_threads()
    print_table(f"translators, torch {torch.__version__}, {threads} threads, {kind}", rows)


if __name__ == "__main__":
    main()
