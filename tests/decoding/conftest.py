"""Models small enough to know the right answer, and a slow plain search to know it by."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from regard.attention import Additive, Attention, Causal, KeyValueCache, MultiHead
from regard.data.batches import Pairs, Words
from regard.decoding import DecodingConfig


@pytest.fixture(autouse=True)
def _the_same_numbers_in_every_run() -> None:
    torch.manual_seed(7)


class Place(NamedTuple):
    """Which table a row reads, and how far it is."""

    tables: Tensor  # (batch,)
    step: int
    picked: list[list[int]]  # every pick there was, for tests that count them

    def pick(self, rows: Tensor) -> Place:
        self.picked.append(rows.tolist())
        return self._replace(tables=self.tables[rows])


class Table:
    """P(next | last word, step) from a table (table, step, last, next); the first id of a source
    names its table."""

    def __init__(self, logits: Tensor):
        self.logits = logits
        self.picked: list[list[int]] = []
        self.rows: list[int] = []

    def start(self, batch: Pairs) -> Place:
        return Place(batch.source[:, 0], 0, self.picked)

    def step(self, ids: Tensor, state: Place) -> tuple[Tensor, Place]:
        self.rows.append(len(ids))
        at = min(state.step, self.logits.shape[1] - 1)
        return self.logits[state.tables, at, ids], state._replace(step=state.step + 1)


def sources(*rows: list[int]) -> Pairs:
    """A batch of these sources, padded on the right, without targets."""
    words = Words.prompts([row[::-1] for row in rows])
    ids, mask = words.inputs.flip(1), words.mask.flip(1)
    return Pairs(ids, mask, ids[:, :0], ids[:, :0], mask[:, :0])


class Answer(NamedTuple):
    ids: tuple[int, ...]
    score: float
    log_probability: float
    ended: bool


def _answer(table: Tensor, ids: tuple[int, ...], first: int, config: DecodingConfig, end: int):
    logs = table.double().log_softmax(-1)
    total = 0.0
    for step, (last, word) in enumerate(zip((first, *ids), ids, strict=False)):
        total += float(logs[min(step, len(logs) - 1), last, word])
    length = len(ids)
    divisor = {
        "none": 1.0,
        "average": length,
        "gnmt": math.pow(5 + length, config.length_alpha) / math.pow(6, config.length_alpha),
    }[config.length_penalty]
    return Answer(ids, total / divisor, total, ids[-1] == end)


def every_answer(table: Tensor, config: DecodingConfig, end: int, first: int = 0) -> list[Answer]:
    """All there is to say, best first: what ends in time, and what is cut off at the longest."""
    words = range(table.shape[-1])
    said = []
    for length in range(1, config.longest + 1):
        for ids in product(words, repeat=length):
            if end in ids[:-1] or (length < config.longest and ids[-1] != end):
                continue
            said.append(_answer(table, ids, first, config, end))
    possible = [answer for answer in said if answer.log_probability > -math.inf]
    return sorted(possible, key=lambda answer: -answer.score)


def plain_beam(table: Tensor, config: DecodingConfig, end: int, first: int = 0) -> list[Answer]:
    """Beam search over lists, one sentence, never stopping before nothing is left to go on with."""
    live, closed = [()], []
    while live:
        longer = [(*ids, word) for ids in live for word in range(table.shape[-1])]
        answers = [_answer(table, ids, first, config, end) for ids in longer]
        answers.sort(key=lambda answer: -answer.log_probability)
        answers = answers[: config.beam - len(closed)]
        done = [a for a in answers if a.ended or len(a.ids) == config.longest]
        live = [a.ids for a in answers if a not in done]
        closed += done
    return sorted(closed, key=lambda answer: -answer.score)[: config.n_best]


class Hidden(NamedTuple):
    hidden: Tensor  # (batch, hidden)

    def pick(self, rows: Tensor) -> Hidden:
        return Hidden(self.hidden[rows])


class Recurrent(nn.Module):
    """A GRU language model."""

    def __init__(self, vocabulary: int = 11, size: int = 13):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size)
        self.cell = nn.GRUCell(size, size)
        self.output = nn.Linear(size, vocabulary)

    def start(self, batch: Words) -> Hidden:
        state = Hidden(torch.zeros(len(batch.inputs), self.cell.hidden_size))
        for ids, real in zip(batch.inputs.unbind(1), batch.mask.unbind(1), strict=True):
            after = self.cell(self.embedding(ids), state.hidden)
            state = Hidden(torch.where(real.unsqueeze(1), after, state.hidden))
        return state

    def step(self, ids: Tensor, state: Hidden) -> tuple[Tensor, Hidden]:
        hidden = self.cell(self.embedding(ids), state.hidden)
        return 3.0 * self.output(hidden), Hidden(hidden)


class Cached(NamedTuple):
    cache: KeyValueCache
    mask: Tensor  # (batch, position) of everything read so far
    memory: Tensor | None = None  # (batch, source, size)
    memory_mask: Tensor | None = None

    def pick(self, rows: Tensor) -> Cached:
        memory = None if self.memory is None else self.memory[rows]
        shown = None if self.memory_mask is None else self.memory_mask[rows]
        return Cached(self.cache.pick(rows), self.mask[rows], memory, shown)


class Attentive(nn.Module):
    """Self-attention over what was said, with a cache; over a source too, if it has one."""

    def __init__(self, vocabulary: int = 11, size: int = 14, heads: int = 7):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size)
        self.self_attention = MultiHead(size, heads)
        self.cross_attention = Attention(Additive(size, size, 5))
        self.output = nn.Linear(size, vocabulary)
        nn.init.normal_(self.embedding.weight, std=2.0)

    def start(self, batch: Words | Pairs) -> Cached:
        if isinstance(batch, Pairs):
            none = torch.zeros(len(batch.source), 0, dtype=torch.bool)
            memory = self.embedding(batch.source)
            return Cached(KeyValueCache(), none, memory, batch.source_mask)
        state = Cached(KeyValueCache(), batch.mask)
        if batch.inputs.shape[1]:
            self._read(self.embedding(batch.inputs), state)
        return state

    def step(self, ids: Tensor, state: Cached) -> tuple[Tensor, Cached]:
        real = torch.ones(len(ids), 1, dtype=torch.bool)
        state = state._replace(mask=torch.cat([state.mask, real], dim=1))
        read = self._read(self.embedding(ids.unsqueeze(1)), state)
        return self.output(read).squeeze(1), state

    def whole(self, ids: Tensor, source: Tensor | None = None) -> Tensor:
        """Logits (position, vocabulary) for one row of ids at once, without a cache or padding."""
        memory = None if source is None else self.embedding(source).unsqueeze(0)
        state = Cached(KeyValueCache(), torch.ones(1, len(ids), dtype=torch.bool), memory)
        return self.output(self._read(self.embedding(ids).unsqueeze(0), state)).squeeze(0)

    def _read(self, x: Tensor, state: Cached) -> Tensor:
        mask = Causal() & state.mask[:, None, None, :]
        x = x + self.self_attention(x, mask=mask, cache=state.cache)
        if state.memory is None:
            return x
        shown = None if state.memory_mask is None else state.memory_mask[:, None, :]
        return x + self.cross_attention(x, state.memory, state.memory, shown).context


class Written(NamedTuple):
    ids: Tensor  # (batch, position)
    mask: Tensor

    def pick(self, rows: Tensor) -> Written:
        return Written(self.ids[rows], self.mask[rows])


class Forgetful:
    """The same language model without its cache: it reads everything again for each word."""

    def __init__(self, model: Attentive):
        self.model = model

    def start(self, batch: Words) -> Written:
        return Written(batch.inputs, batch.mask)

    def step(self, ids: Tensor, state: Written) -> tuple[Tensor, Written]:
        state = Written(
            torch.cat([state.ids, ids.unsqueeze(1)], dim=1),
            torch.cat([state.mask, torch.ones(len(ids), 1, dtype=torch.bool)], dim=1),
        )
        fresh = Cached(KeyValueCache(), state.mask)
        read = self.model._read(self.model.embedding(state.ids), fresh)
        return self.model.output(read[:, -1]), state


@pytest.fixture(scope="session")
def table() -> Callable[..., Table]:
    """table(vocabulary, steps=…, tables=…, seed=…): random logits."""

    def make(vocabulary: int, steps: int = 5, tables: int = 1, seed: int = 0, scale: float = 2.0):
        generator = torch.Generator().manual_seed(seed)
        shape = (tables, steps, vocabulary, vocabulary)
        # In double precision, so that no two answers are as good as each other by rounding.
        return Table(scale * torch.randn(shape, generator=generator, dtype=torch.float64))

    return make


@pytest.fixture(scope="session")
def toys() -> SimpleNamespace:
    """Everything above, for tests to build from."""
    return SimpleNamespace(
        Table=Table,
        Recurrent=Recurrent,
        Attentive=Attentive,
        Forgetful=Forgetful,
        sources=sources,
        every_answer=every_answer,
        plain_beam=plain_beam,
    )
