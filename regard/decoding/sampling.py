"""Sampling with temperature, top-k and top-p; a row draws the same words in every batch."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import torch
from torch import Tensor

from regard.decoding.ancestry import Ancestry
from regard.decoding.config import DecodingConfig
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.paths import Choice, choose_likeliest, collect_hypotheses, decode_steps
from regard.decoding.rules import Rules
from regard.decoding.seam import B, Model, S

STEPS_PER_BLOCK = 64
"""Steps whose random numbers a path draws at once: a call a path and step would be slow."""
NUCLEUS_CANDIDATES = (256, 2048)
"""So many of the likeliest words are searched for a nucleus before the whole vocabulary is."""


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
    rules, copies = Rules.from_config(config, end, never), config.n_best
    choose = make_sampler(config, first.numel(), numbers)
    steps = decode_steps(model, batch, first, config, rules, choose, ancestry, copies)
    return collect_hypotheses(steps, first.numel(), copies)


def make_sampler(config: DecodingConfig, batch: int, numbers: Sequence[int] | None) -> Choice:
    """A function that samples the next word of each row; see `Choice`."""
    numbers = range(batch) if numbers is None else numbers
    if len(numbers) != batch:
        raise ValueError(f"numbers ({len(numbers)}) must be as many as the batch has rows, {batch}")
    if config.temperature == 0.0:
        return choose_likeliest
    paths = [(row, copy) for row in numbers for copy in range(config.n_best)]
    draws = UniformDraws(config.seed, paths)

    def choose(log_probs: Tensor, paths: Tensor, step: int) -> Tensor:
        return sample_ids(log_probs, draws.at(step, paths), config)

    return choose


class UniformDraws:
    """A number from [0, 1) for each path and step, from a generator that is the path's own."""

    def __init__(self, seed: int, paths: list[tuple[int, int]]):
        self._generators = [_make_generator(f"{seed} {row} {copy}") for row, copy in paths]
        self._block = torch.empty(len(paths), 0, dtype=torch.float64)  # (path, step)

    def at(self, step: int, paths: Tensor) -> Tensor:
        """The numbers (row,) of these paths for this step; steps come in order."""
        if step % STEPS_PER_BLOCK == 0:
            block = [
                torch.rand(STEPS_PER_BLOCK, dtype=torch.float64, generator=generator)
                for generator in self._generators
            ]
            self._block = torch.stack(block).to(paths.device)
        return self._block[paths, step % STEPS_PER_BLOCK]


def sample_ids(log_probs: Tensor, uniform: Tensor, config: DecodingConfig) -> Tensor:
    """Sample a word (row,) for each row by the inverse of its distribution at `uniform` in [0, 1).

    The shares lie in the order of the vocabulary. In the order of probability a rounding error
    could swap two like words, and a batch of another size would say the other one.
    """
    weights, words = filter_words(log_probs, config)
    if words is None:
        return invert_cdf(weights, uniform)
    words, order = words.sort(dim=-1)
    index = invert_cdf(weights.gather(1, order), uniform)
    return words.gather(1, index.unsqueeze(1)).squeeze(1)


def filter_words(log_probs: Tensor, config: DecodingConfig) -> tuple[Tensor, Tensor | None]:
    """The weights that words are drawn by, (row, choice), and their ids; None for the vocabulary.

    First the temperature, then the `top_k` likeliest, then of these the fewest that hold `top_p`.
    """
    peak = log_probs.amax(dim=-1, keepdim=True)
    weights = ((log_probs - peak) / config.temperature).exp()  # (row, vocabulary)
    words = None
    if config.top_k is not None and config.top_k < weights.shape[1]:
        weights, words = weights.topk(config.top_k, dim=-1)  # (row, choice)
    if config.top_p < 1.0:
        weights, indices = nucleus(weights, config.top_p)
        words = indices if words is None else words.gather(1, indices)
    return weights, words


def nucleus(weights: Tensor, top_p: float) -> tuple[Tensor, Tensor]:
    """The fewest words that hold `top_p` of all the weight: weights and indices, (row, choice).

    Rows that need fewer choices than others have weights of 0 at the end.
    """
    total = weights.sum(dim=-1, keepdim=True, dtype=torch.float64)
    # Sorting a whole vocabulary can cost more than the step of the model, so it waits.
    vocabulary = weights.shape[1]
    for count in sorted({min(some, vocabulary) for some in (*NUCLEUS_CANDIDATES, vocabulary)}):
        top_weights, words = weights.topk(count, dim=-1)
        before = top_weights.cumsum(dim=-1, dtype=torch.float64) - top_weights  # likelier words
        inside = before < top_p * total
        if not bool(inside[:, -1].any()):
            break
    return top_weights.where(inside, 0.0), words


def invert_cdf(weights: Tensor, uniform: Tensor) -> Tensor:
    """The index (row,) at which the cumulated weights exceed `uniform` (row,) times their sum."""
    cumulated = weights.cumsum(dim=-1, dtype=torch.float64)  # (row, choice)
    target = uniform.unsqueeze(1) * cumulated[:, -1:]
    index = torch.searchsorted(cumulated, target, right=True).squeeze(1)
    return index.clamp(max=weights.shape[1] - 1)  # no weight is above 0 where all is barred


def _make_generator(name: str) -> torch.Generator:
    # Hashed, since seeds in a row would let row 1 of seed 0 draw what row 0 of seed 1 draws.
    seed = int.from_bytes(blake2b(name.encode(), digest_size=4).digest(), "little")
    return torch.Generator().manual_seed(seed)
