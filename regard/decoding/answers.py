"""Decode with the method that a config names, whole answers or a stream of words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor

from regard.decoding.ancestry import Ancestry
from regard.decoding.beams import beam
from regard.decoding.config import DecodingConfig
from regard.decoding.hf_beam import hf_beam
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.paths import choose_likeliest, decode_steps, greedy
from regard.decoding.rules import Rules
from regard.decoding.sampling import make_sampler, sample
from regard.decoding.seam import B, Model, S


def decode(
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
    """`greedy`, `sample` or `beam`, as `config.method` says; `numbers` matter to `sample` alone."""
    if config.method == "sample":
        return sample(
            model, batch, first, config, end=end, never=never, ancestry=ancestry, numbers=numbers
        )
    search = greedy
    if config.method == "beam":
        search = beam if config.stopping == "exact" else hf_beam
    return search(model, batch, first, config, end=end, never=never, ancestry=ancestry)


def stream(
    model: Model[B, S],
    batch: B,
    first: Tensor,
    config: DecodingConfig,
    *,
    end: int | None = None,
    never: Sequence[int] = (),
    number: int = 0,
) -> Iterator[int]:
    """The ids of one answer as they come, the end among them; the same that `decode` gives."""
    if config.method == "beam":
        raise ValueError(
            "method (beam) cannot be streamed, since a beam may yet change its words: "
            "use greedy or sample"
        )
    if config.n_best > 1:
        raise ValueError(f"n_best ({config.n_best}) cannot be streamed: a stream is one answer")
    if first.numel() != 1:
        raise ValueError(f"first ({first.numel()} rows) must be one row: a stream is one answer")
    choose = choose_likeliest if config.method == "greedy" else make_sampler(config, 1, [number])
    rules = Rules.from_config(config, end, never)
    steps = decode_steps(model, batch, first, config, rules, choose)
    return (int(step.ids) for step in steps if len(step.ids))
