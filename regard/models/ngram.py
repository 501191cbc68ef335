"""The n-gram language model: count what came before, and smooth what never did.

p(w₁ … w_T) = Π p(w_t | w_{t−n+1} … w_{t−1})

A word depends on the n − 1 before it alone. Most long contexts of a new text were never counted, so
everything hangs on the smoothing (see `smoothing`): interpolated modified Kneser-Ney, unless a
lecture wants to show why. Chen & Goodman (1999), "An empirical study of smoothing techniques for
language modeling".

What is scored: every id of a corpus, its ends of sentences too. What is not: the beginning of a
sentence, which is only a context. It has no id of its own; an `end` that stands before a word is
the beginning for it, and nothing reaches back over it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes
from torch import Tensor

from regard.atomic import write_atomically
from regard.data.batches import Words
from regard.models.checks import check_above_zero, check_at_least, check_one_of
from regard.models.smoothing import (
    ABOVE_ALL_KEYS,
    ABSENT,
    Floats,
    Ints,
    Level,
    additive,
    contexts_before,
    count_ngrams,
    kneser_ney,
    stupid_backoff,
)

SMOOTHINGS = ("kneser-ney", "additive", "stupid-backoff")


@dataclass(frozen=True, kw_only=True)
class NgramConfig:
    """Chen & Goodman (1999). The defaults are the 5-gram that later papers compare with.

    The vocabulary is closed: every id has a probability, and another id is refused. With `unknown`
    it is open: any other id is read as that one.
    """

    vocabulary_size: int
    order: int = 5
    smoothing: str = "kneser-ney"  # or "additive", "stupid-backoff"
    added_count: float = 1.0  # of additive smoothing: 1 is Laplace, less is Lidstone
    backoff: float = 0.4  # of stupid backoff
    unknown: int | None = None

    def __post_init__(self) -> None:
        check_at_least(1, self, "vocabulary_size", "order")
        check_one_of(SMOOTHINGS, self, "smoothing")
        check_above_zero(self, "added_count")
        if not 0 < self.backoff <= 1:
            raise ValueError(f"backoff ({self.backoff}) must be above 0 and at most 1")
        _check_id("unknown", self.unknown, self.vocabulary_size)


class NgramState(NamedTuple):
    """What was said so far: the node of the last word, of the last two, up to order − 1."""

    nodes: Tensor  # (batch, order − 1)

    def pick(self, rows: Tensor) -> NgramState:
        """The state of these rows of the batch, in this order; a row may come more than once."""
        return NgramState(self.nodes.index_select(0, rows.to(self.nodes.device)))

    def detach(self) -> NgramState:
        return self


class Ngram:
    """p(w | h) = kept(hw) + backoff(h) · p(w | h′), from uniform up to the longest context

    model = Ngram(NgramConfig(vocabulary_size=10_000, order=5)).fit(ids, end=2)
    model.perplexity(other_ids)
    """

    def __init__(self, config: NgramConfig):
        self.config = config
        self.end: int | None = None
        self.levels: list[Level] = []

    def fit(self, ids: ArrayLike, end: int | None = None) -> Ngram:
        """Count a corpus: ids (position,), every sentence closed by `end`; one sentence if None."""
        _check_id("end", end, self.config.vocabulary_size)
        known = self._known_ids(ids)
        counts = count_ngrams(known, self.config.order, self.config.vocabulary_size, end)
        self.end = end
        if self.config.smoothing == "kneser-ney":
            self.levels = kneser_ney(counts)
        elif self.config.smoothing == "additive":
            self.levels = additive(counts, self.config.vocabulary_size, self.config.added_count)
        else:
            self.levels = stupid_backoff(counts, self.config.vocabulary_size, self.config.backoff)
        return self

    @property
    def normalised(self) -> bool:
        """Whether the scores of all words add up to 1; those of stupid backoff do not."""
        return self.config.smoothing != "stupid-backoff"

    def log_probabilities(self, ids: ArrayLike) -> Floats:
        """ln p of each id given those before it, (position,); a corpus laid out as for `fit`.

        Of stupid backoff, the logarithms of its scores.
        """
        ids, size = self._known_ids(ids), self.config.vocabulary_size
        p = np.full(len(ids), 1 / size)
        contexts = np.zeros_like(ids)  # everything follows the empty context
        for length, level in enumerate(self._fitted_levels(), start=1):
            nodes = level.find(contexts, ids, size)
            p = level.kept[nodes] + level.backoff[contexts] * p
            contexts = contexts_before(nodes, ids, length, self.end)
        return np.log(p)

    def perplexity(self, ids: ArrayLike) -> float:
        """exp(− mean ln p) over every id, ends of sentences among them."""
        if not self.normalised:
            raise ValueError(
                f"smoothing {self.config.smoothing!r} has no perplexity: "
                "its scores do not add up to 1"
            )
        return float(np.exp(-self.log_probabilities(ids).mean()))

    def distribution(self, context: Sequence[int] | Ints) -> Floats:
        """p of every id (vocabulary,) after the words so far of a sentence, none at its beginning.

        Stupid backoff gives its scores here, which add up to more than 1.
        """
        words = self._known_ids(context, least=0)
        nodes = self._read_contexts(words[None], np.ones((1, len(words)), dtype=bool))
        return self._distributions(nodes)[0]

    def start(self, batch: Words) -> NgramState:
        """The state after `batch.inputs`, padded on the left, at the beginning of a sentence."""
        ids = batch.inputs.cpu().numpy()
        mask = batch.mask.cpu().numpy()
        known = self._known_ids(np.where(mask, ids, 0).ravel(), least=0).reshape(ids.shape)
        return NgramState(torch.from_numpy(self._read_contexts(known, mask)))

    def step(self, ids: Tensor, state: NgramState) -> tuple[Tensor, NgramState]:
        """Last words (batch,) → ln p of the next (batch, vocabulary), and the state after them."""
        known = self._known_ids(ids.cpu().numpy(), least=0)
        nodes = self._advance(state.nodes.cpu().numpy(), known)
        logits = np.log(self._distributions(nodes)).astype(np.float32)
        return torch.from_numpy(logits).to(ids.device), NgramState(torch.from_numpy(nodes))

    def _read_contexts(self, ids: Ints, mask: NDArray[np.bool_]) -> Ints:
        """Sentences (batch, position) → nodes (batch, order − 1)."""
        self._fitted_levels()
        longest = self.config.order - 1
        nodes = np.full((len(ids), longest), ABSENT)
        if self.end is not None:
            nodes[:, :1] = self.end
        # Earlier words would be forgotten again: longest words on, each node is made of them alone.
        for place in range(max(0, ids.shape[1] - longest), ids.shape[1]):
            after = self._advance(nodes, ids[:, place])
            nodes = np.where(mask[:, place, None], after, nodes)
        return nodes

    def _advance(self, nodes: Ints, ids: Ints) -> Ints:
        """Nodes (batch, order − 1) and one more word (batch,) → nodes."""
        following = [ids]
        for level, contexts in zip(self._fitted_levels()[1:-1], nodes.T[:-1], strict=True):
            longer = level.find(contexts, ids, self.config.vocabulary_size)
            following.append(np.where(ids == self.end, ABSENT, longer))
        return np.stack(following, axis=1)[:, : nodes.shape[1]]

    def _distributions(self, nodes: Ints) -> Floats:
        """Nodes (batch, order − 1) → p of every next word (batch, vocabulary)."""
        size, rows = self.config.vocabulary_size, np.arange(len(nodes))
        p = np.full((len(nodes), size), 1 / size)
        empty = np.zeros_like(rows)
        for level, contexts in zip(self._fitted_levels(), [empty, *nodes.T], strict=True):
            first, last = level.followers(contexts, size)
            counts = last - first
            row = np.repeat(rows, counts)  # (follower,) of all contexts, one after another
            node = np.arange(len(row)) + np.repeat(last - counts.cumsum(), counts)
            p *= level.backoff[contexts, None]
            p[row, level.keys[node] % size] += level.kept[node]
        return p

    def _known_ids(self, ids: ArrayLike, least: int = 1) -> Ints:
        """Ids as a checked array (position,), those outside an open vocabulary made `unknown`."""
        given, size = np.asarray(ids), self.config.vocabulary_size
        if given.ndim != 1 or len(given) < least:
            raise ValueError(f"ids {given.shape} must be (position,), with at least {least}")
        if given.size and not np.issubdtype(given.dtype, np.integer):
            raise ValueError(f"ids ({given.dtype}) must be whole numbers")
        known = given.astype(np.int64)
        outside = (known < 0) | (known >= size)
        if outside.any() and self.config.unknown is None:
            place = int(outside.argmax())
            raise ValueError(
                f"ids[{place}] ({known[place]}) is outside the vocabulary_size ({size}); "
                "with `unknown` set, such ids are read as that one"
            )
        return np.where(outside, self.config.unknown or 0, known)

    def _fitted_levels(self) -> list[Level]:
        """The levels, once there are any."""
        if not self.levels:
            raise ValueError("the n-gram model has counted nothing yet: call fit first")
        return self.levels

    def tensors(self) -> dict[str, NDArray[Any]]:
        """All that was learned, as plain arrays by name."""
        end = -1 if self.end is None else self.end
        named: dict[str, NDArray[Any]] = {"end": np.array([end])}
        for length, level in enumerate(self._fitted_levels(), start=1):
            named |= {f"levels.{length}.{part}": values for part, values in level._asdict().items()}
        return named

    @classmethod
    def from_tensors(cls, config: NgramConfig, tensors: Mapping[str, NDArray[Any]]) -> Ngram:
        """The model whose `tensors` these are, from whoever they come."""
        model, shorter = cls(config), 1
        end = _get_array(tensors, "end", np.int64)
        if len(end) != 1 or not -1 <= end[0] < config.vocabulary_size:
            raise ValueError(f"end ({end[:3]}) must be one id of the vocabulary, or -1")
        model.end = None if end[0] < 0 else int(end[0])
        for length in range(1, config.order + 1):
            level = Level(
                keys=_get_array(tensors, f"levels.{length}.keys", np.int64),
                kept=_get_array(tensors, f"levels.{length}.kept", np.float64),
                backoff=_get_array(tensors, f"levels.{length}.backoff", np.float64),
            )
            ngrams = config.vocabulary_size if length == 1 else len(level.keys) - 1
            sizes, needed = [len(part) for part in level], [ngrams + 1, ngrams + 2, shorter + 2]
            if sizes != needed:
                raise ValueError(f"levels.{length} holds {sizes} numbers, must hold {needed}")
            _check_level(level, f"levels.{length}", shorter * config.vocabulary_size)
            model.levels.append(level)
            shorter = ngrams
        return model

    def save(self, path: str | Path) -> None:
        """Write a safetensors file that holds config and tensors, or leave `path` as it was."""
        config = {"config": json.dumps(asdict(self.config))}
        write_atomically(Path(path), to_bytes(self.tensors(), metadata=config))

    @classmethod
    def load(cls, path: str | Path) -> Ngram:
        """The model in a file that `save` wrote."""
        if not Path(path).exists():
            raise FileNotFoundError(f"no n-gram model at {path}")
        try:
            with safe_open(path, framework="numpy") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except SafetensorError as error:
            raise ValueError(f"{path} is not a whole safetensors file: {error}") from error
        if "config" not in metadata:
            raise ValueError(f"{path} is a safetensors file, but not of an n-gram model")
        try:
            config = NgramConfig(**json.loads(metadata["config"]))
        except (TypeError, RecursionError):  # no table, of other names or types, or nested
            raise ValueError(f"{path} holds no settings of an n-gram model") from None
        return cls.from_tensors(config, tensors)


def _get_array(tensors: Mapping[str, NDArray[Any]], name: str, kind: type[Any]) -> NDArray[Any]:
    if name not in tensors:
        raise ValueError(f"tensors has no {name!r}")
    part = np.asarray(tensors[name])
    if part.ndim != 1 or part.dtype != kind:
        raise ValueError(f"{name} ({part.dtype} {part.shape}) must be {kind.__name__} (number,)")
    return part


def _check_level(level: Level, name: str, key_limit: int) -> None:
    """Refuse n-grams that are not in order or not of this vocabulary, and shares above 1."""
    keys, last = level.keys[:-1], level.keys[-1]
    growing = bool((level.keys[:-1] < level.keys[1:]).all())
    if not growing or level.keys[0] < 0 or last != ABOVE_ALL_KEYS or (keys >= key_limit).any():
        raise ValueError(f"{name}.keys must grow from 0 to below {key_limit}, and end above all")
    one = 1 + 1e-9  # with what rounding adds
    # Stupid backoff keeps what is missing from the shorter n-gram's share, which may be negative.
    kept = np.abs(level.kept) <= one
    backoff = (level.backoff >= 0) & (level.backoff <= one)
    if not (kept.all() and backoff.all()):
        raise ValueError(f"{name} must hold shares: kept from -1 to 1, backoff from 0 to 1")


def _check_id(name: str, value: int | None, vocabulary_size: int) -> None:
    if value is not None and not 0 <= value < vocabulary_size:
        raise ValueError(f"{name} ({value}) must be below vocabulary_size ({vocabulary_size})")
