"""Words drawn by chance, the same ones in every batch."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import torch
from torch import Tensor

from regard.decoding.ancestry import Ancestry
from regard.decoding.config import DecodingConfig
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.paths import Choice, gathered, likeliest, turns
from regard.decoding.rules import Rules
from regard.decoding.seam import B, Model, S

BLOCK = 64
"""Steps whose numbers a path draws at once, so that no step has to ask every path."""
REACH = (256, 2048)
"""Words among which a nucleus is looked for before the whole vocabulary is; most are smaller."""


def sample(
    model: Model[B, S],
    batch: B,
    first: Tensor,
    config: DecodingConfig,
    *,
    end: int | None = None,
    never: Sequence[int] = (),
    ancestry: Ancestry | None = None,
    numbers: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """y_t ~ P(y | y_<t)^(1/temperature), among the top_k words that make up top_p of it.

    `n_best` draws for each row, best first. What a row draws depends on the seed and its number
    alone: `numbers`, 0, 1, … if not given, let a row draw the same in whatever batch it comes.

    Top-k: Fan, Lewis & Dauphin (2018), section 5. Top-p: Holtzman et al. (2020), section 3.1.
    """
    rules, copies = Rules.of(config, end, never), config.n_best
    choose = chance(config, first.numel(), numbers)
    taken = turns(model, batch, first, config, rules, choose, ancestry, copies)
    return gathered(taken, first.numel(), copies)


def chance(config: DecodingConfig, batch: int, numbers: Sequence[int] | None) -> Choice:
    """The sampler's way to choose."""
    numbers = range(batch) if numbers is None else numbers
    if len(numbers) != batch:
        raise ValueError(f"numbers ({len(numbers)}) must be as many as the batch has rows, {batch}")
    if config.temperature == 0.0:
        return likeliest
    draws = Draws(config.seed, [(row, copy) for row in numbers for copy in range(config.n_best)])

    def choose(logs: Tensor, paths: Tensor, step: int) -> Tensor:
        return drawn(logs, draws.at(step, paths), config)

    return choose


class Draws:
    """A number from [0, 1) for each path and step, from a generator that is the path's own."""

    def __init__(self, seed: int, paths: list[tuple[int, int]]):
        self._generators = [_generator(f"{seed} {row} {copy}") for row, copy in paths]
        self._block = torch.empty(len(paths), 0, dtype=torch.float64)  # (path, step)

    def at(self, step: int, paths: Tensor) -> Tensor:
        """The numbers (row,) of these paths for this step; steps come in order."""
        if step % BLOCK == 0:
            own = (torch.rand(BLOCK, dtype=torch.float64, generator=g) for g in self._generators)
            self._block = torch.stack(list(own)).to(paths.device)
        return self._block[paths, step % BLOCK]


def drawn(logs: Tensor, uniform: Tensor, config: DecodingConfig) -> Tensor:
    """The word (row,) into whose share of the probability the number from [0, 1) falls.

    The shares lie in the order of the vocabulary. In the order of probability a rounding error
    could swap two like words, and a batch of another size would say the other one.
    """
    peak = logs.amax(dim=-1, keepdim=True)
    weights = ((logs - peak) / config.temperature).exp()  # (row, vocabulary)
    words = None
    if config.top_k is not None and config.top_k < weights.shape[1]:
        weights, words = weights.topk(config.top_k, dim=-1)  # (row, choice)
    if config.top_p < 1.0:
        weights, places = nucleus(weights, config.top_p)
        words = places if words is None else words.gather(1, places)
    if words is None:
        return pointed(weights, uniform)
    words, order = words.sort(dim=-1)
    place = pointed(weights.gather(1, order), uniform)
    return words.gather(1, place.unsqueeze(1)).squeeze(1)


def nucleus(weights: Tensor, top_p: float) -> tuple[Tensor, Tensor]:
    """The fewest words that hold `top_p` of all the weight, and their places, (row, choice).

    Rows that need fewer choices than others have weights of 0 at the end.
    """
    whole = weights.sum(dim=-1, keepdim=True, dtype=torch.float64)
    # Sorting a whole vocabulary can cost more than the step of the model, so it waits.
    for reach in sorted({min(some, weights.shape[1]) for some in (*REACH, weights.shape[1])}):
        likely, places = weights.topk(reach, dim=-1)
        before = likely.cumsum(dim=-1, dtype=torch.float64) - likely  # what likelier words hold
        inside = before < top_p * whole
        if not bool(inside[:, -1].any()):
            break
    return likely.where(inside, 0.0), places


def pointed(weights: Tensor, uniform: Tensor) -> Tensor:
    """The place (row,) of the weight at `uniform` of the way through their sum."""
    shares = weights.cumsum(dim=-1, dtype=torch.float64)  # (row, choice)
    aim = uniform.unsqueeze(1) * shares[:, -1:]
    place = torch.searchsorted(shares, aim, right=True).squeeze(1)
    return place.clamp(max=weights.shape[1] - 1)  # nobody has a share where all is barred


def _generator(name: str) -> torch.Generator:
    # Hashed, since seeds in a row would let row 1 of seed 0 draw what row 0 of seed 1 draws.
    seed = int.from_bytes(blake2b(name.encode(), digest_size=4).digest(), "little")
    return torch.Generator().manual_seed(seed)
