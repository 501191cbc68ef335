"""How scores become weights: `weigh(scores, mask, queries, carried) → weights, carried`.

scores (batch, …, query, key); mask boolean, broadcast to the scores, True where one may look;
queries as they were before the score transformed them; `carried` is what a weighing with a memory
brings from the last step and hands to the next. A query that may look nowhere weighs everything 0.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.precision import at_least_single, without_autocast
from regard.products import Linear


class Weighing(nn.Module):
    """Turns scores into weights."""

    pure = False
    """Whether the weights follow from scores and mask alone, so that they can be computed again for
    the rows somebody asks about. All others have their weights stored."""

    def forward(
        self, scores: Tensor, mask: Tensor | None, queries: Tensor, carried: Any = None
    ) -> tuple[Tensor, Any]:
        raise NotImplementedError


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """exp(score) / Σ exp(score) over what may be seen."""
    if mask is None:
        return scores.softmax(dim=-1)
    # The lowest finite number rather than -inf, since a query with every key hidden would softmax
    # to NaN. The second fill leaves that query with what it saw: nothing.
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)


class Softmax(Weighing):
    """weight = bᵉᐟᵗ / Σ bᵉᐟᵗ,  for scores e, base b and temperature t

    Base e and temperature 1 are everybody's softmax; base 3 is the one a lecture does in its head.
    """

    pure = True

    def __init__(self, temperature: float = 1.0, base: float = math.e):
        super().__init__()
        if not temperature > 0:
            raise ValueError(f"temperature ({temperature}) must be above 0")
        if not base > 1:
            raise ValueError(f"base ({base}) must be above 1: larger scores weigh more")
        self.temperature, self.base = temperature, base

    @property
    def sharpness(self) -> float:
        """What the scores are multiplied by, to make it the plain softmax: ln b / t."""
        return math.log(self.base) / self.temperature

    def forward(
        self, scores: Tensor, mask: Tensor | None, queries: Tensor, carried: Any = None
    ) -> tuple[Tensor, Any]:
        sharpness = self.sharpness
        return masked_softmax(scores if sharpness == 1.0 else scores * sharpness, mask), carried


class Sparsemax(Weighing):
    """weights = argmin over the simplex of ‖weights − scores‖²

    The nearest distribution to the scores themselves: small scores get exactly nothing.

    Martins & Astudillo (2016), section 2.2, algorithm 1.
    """

    pure = True

    def forward(
        self, scores: Tensor, mask: Tensor | None, queries: Tensor, carried: Any = None
    ) -> tuple[Tensor, Any]:
        if scores.shape[-1] == 0:
            return scores, carried
        dtype, scores = scores.dtype, at_least_single(scores)  # ranks are counted and scores summed
        hidden = None if mask is None else (~mask).expand_as(scores)
        # Only differences count. Measured from the best score they add up without loss, and −2 is
        # already out of the support, which is where hidden keys belong.
        seen = scores if hidden is None else scores.masked_fill(hidden, -math.inf)
        best = seen.detach().amax(dim=-1, keepdim=True).nan_to_num(neginf=0.0)
        scores = (scores - best).clamp(min=-2.0)
        if hidden is not None:
            scores = scores.masked_fill(hidden, -2.0)
        ordered = scores.sort(dim=-1, descending=True).values
        rank = torch.arange(1, scores.shape[-1] + 1, device=scores.device, dtype=scores.dtype)
        above = ordered.cumsum(dim=-1) - 1
        support = (rank * ordered > above).sum(dim=-1, keepdim=True)  # how many stay above 0
        threshold = above.gather(-1, support - 1) / support
        weights = (scores - threshold).clamp(min=0).to(dtype)
        return (weights if hidden is None else weights.masked_fill(hidden, 0.0)), carried


class Proportional(Weighing):
    """weight = score / Σ score

    Scores normalised as they are. Where they add up to nothing, nothing is read.
    """

    pure = True

    def forward(
        self, scores: Tensor, mask: Tensor | None, queries: Tensor, carried: Any = None
    ) -> tuple[Tensor, Any]:
        if mask is not None:
            scores = scores.masked_fill(~mask, 0.0)
        total = scores.sum(dim=-1, keepdim=True)
        nothing = total == 0
        return (scores / total.masked_fill(nothing, 1.0)).masked_fill(nothing, 0.0), carried


class Given(Weighing):
    """Weights handed in, whatever the scores say: (query, key) or with leading axes."""

    weights: Tensor

    def __init__(self, weights: Tensor):
        super().__init__()
        self.register_buffer("weights", weights)

    def forward(
        self, scores: Tensor, mask: Tensor | None, queries: Tensor, carried: Any = None
    ) -> tuple[Tensor, Any]:
        try:
            # A copy, since what was read with these weights must not change with them.
            weights = self.weights.to(scores, copy=True).expand_as(scores)
        except RuntimeError:
            raise ValueError(
                f"Given weights {tuple(self.weights.shape)} do not fit the scores "
                f"{tuple(scores.shape)} (…, query, key)"
            ) from None
        return (weights if mask is None else weights.masked_fill(~mask, 0.0)), carried


class HardSample(NamedTuple):
    """One sampled position per query, as REINFORCE needs it; zeros where no key may be seen."""

    positions: Tensor  # (batch, …, query), the key looked at
    log_probability: Tensor  # (batch, …, query), of having looked there
    entropy: Tensor  # (batch, …, query), of the distribution sampled from
    distribution: Tensor  # (batch, …, query, key), the softmax that was sampled from


class Hard(Weighing):
    """One position, sampled from softmax(scores), has all the weight

    Sampling has no gradient. ∇ log p(position) · (reward − baseline) stands in for it, with the
    entropy as a bonus; both are left behind in `carried`, as a `HardSample`. In evaluation the most
    likely position is taken ("argmax"), one is sampled all the same ("sample"), or the whole
    distribution weighs the values, which reads what sampling reads on average ("expected").

    A share of the queries of a training step can read the expected value, too. They learn by an
    exact gradient, which steadies the rest; they drew nothing, so their log-probability is 0.

    Xu et al. (2015), section 4.1, equations 11 and 12, and section 4.2, equation 8, for the
    expected value, which they take half of the time; Williams (1992).
    """

    def __init__(
        self,
        evaluate: str = "argmax",
        generator: torch.Generator | None = None,
        expected_share: float = 0.0,
    ):
        super().__init__()
        if evaluate not in ("argmax", "sample", "expected"):
            raise ValueError(f"evaluate ({evaluate!r}) must be 'argmax', 'sample' or 'expected'")
        if not 0.0 <= expected_share < 1.0:
            raise ValueError(f"expected_share ({expected_share}) must be at least 0 and below 1")
        self.evaluate, self.generator = evaluate, generator
        self.expected_share = expected_share

    def forward(
        self, scores: Tensor, mask: Tensor | None, queries: Tensor, carried: Any = None
    ) -> tuple[Tensor, HardSample]:
        if scores.shape[-1] == 0:
            nothing = scores.sum(dim=-1)
            return scores, HardSample(torch.zeros_like(nothing).long(), nothing, nothing, scores)
        weights = masked_softmax(scores, mask)
        blind = weights.detach().sum(dim=-1) == 0  # (batch, …, query)
        # A blind query samples from the uniform distribution, and its sample is then taken away.
        probabilities = weights + blind.unsqueeze(-1).to(weights.dtype) / weights.shape[-1]
        positions = self._sample(probabilities.detach())  # (batch, …, query)
        log_probabilities = probabilities.clamp(min=torch.finfo(probabilities.dtype).tiny).log()
        log_probability = log_probabilities.gather(-1, positions.unsqueeze(-1)).squeeze(-1)
        entropy = -(probabilities * log_probabilities).sum(dim=-1)
        averaged = self._choose_averaged(blind)
        sample = HardSample(
            positions,
            log_probability.masked_fill(averaged | blind, 0.0),
            entropy.masked_fill(blind, 0.0),
            weights,
        )
        one_hot = torch.zeros_like(probabilities).scatter(-1, positions.unsqueeze(-1), 1.0)
        drawn = one_hot.masked_fill(blind.unsqueeze(-1), 0.0)
        return torch.where(averaged.unsqueeze(-1), weights, drawn), sample

    def _choose_averaged(self, blind: Tensor) -> Tensor:
        """(batch, …, query), True for queries that read the expected value."""
        if not self.training:
            return torch.full_like(blind, self.evaluate == "expected")
        if self.expected_share == 0.0:
            return torch.zeros_like(blind)
        draws = torch.rand(blind.shape, device=blind.device, generator=self.generator)
        return draws < self.expected_share

    def _sample(self, probabilities: Tensor) -> Tensor:
        if not self.training and self.evaluate != "sample":
            return probabilities.argmax(dim=-1)
        flat = probabilities.reshape(-1, probabilities.shape[-1])
        return torch.multinomial(flat, 1, generator=self.generator).view(probabilities.shape[:-1])


class LocalMonotonic(Weighing):
    """weights = softmax(scores) inside the window [t − D, t + D], with p_t = t

    Source and target are taken to march in step. `carried` is the number of steps so far. A target
    longer than its source keeps the window at the source's end.

    Luong, Pham & Manning (2015), section 3.2, *local-m*.
    """

    def __init__(self, reach: int = 10):
        super().__init__()
        _check_reach(reach)
        self.reach = reach

    def forward(
        self, scores: Tensor, mask: Tensor | None, queries: Tensor, carried: Any = None
    ) -> tuple[Tensor, int]:
        step = 0 if carried is None else int(carried)
        steps = torch.arange(step, step + scores.shape[-2], device=scores.device)
        first, count = visible_span(scores, mask)  # (batch, …, query)
        centres = first + torch.minimum(steps, (count - 1).clamp(min=0))
        window = _window_mask(centres, self.reach, scores)
        return masked_softmax(scores, window if mask is None else window & mask), (
            step + scores.shape[-2]
        )


class LocalPredictive(Weighing):
    """weight = softmax(scores) · exp(−(s − p)² / 2σ²)  for s in [p − D, p + D],  σ = D / 2,
    p = S · sigmoid(vᵀ tanh(W q)),  S the length of the source

    The query says how far into the source to look; a Gaussian around that place favours what is
    near. It comes after the softmax and nothing is normalised again, so rows add up to less than 1.
    `carried` is p, the centre of each query's window.

    Luong, Pham & Manning (2015), section 3.2, equations 9 and 10, *local-p*.
    """

    def __init__(self, query_size: int, hidden_size: int | None = None, reach: int = 10):
        super().__init__()
        _check_reach(reach)
        self.reach = reach
        self.hidden = Linear(query_size, hidden_size or query_size, bias=False)
        self.place = Linear(hidden_size or query_size, 1, bias=False)

    def centres(self, queries: Tensor, lengths: Tensor) -> Tensor:
        """p, (batch, …, query)"""
        if queries.shape[-1] != self.hidden.in_features:
            raise ValueError(
                f"queries {tuple(queries.shape)} must end in the size {self.hidden.in_features}"
            )
        # In half precision a place among 1,001 keys is off by whole keys. So the matrices are used
        # in float32, whatever they are kept in and whatever autocast would make of them.
        hidden, place = (at_least_single(part.weight) for part in (self.hidden, self.place))
        with without_autocast(queries.device):
            share = F.linear(F.linear(at_least_single(queries), hidden).tanh(), place).sigmoid()
            return lengths * share.squeeze(-1)

    def forward(
        self, scores: Tensor, mask: Tensor | None, queries: Tensor, carried: Any = None
    ) -> tuple[Tensor, Tensor]:
        first, count = visible_span(scores, mask)
        centres = first + self.centres(queries, count)  # (batch, …, query)
        window = _window_mask(centres, self.reach, scores)
        weights = masked_softmax(scores, window if mask is None else window & mask)
        distance = _key_positions(scores) - centres.unsqueeze(-1)  # (batch, …, query, key)
        deviation = self.reach / 2
        gaussian = (-distance.square() / (2 * deviation**2)).exp()
        return (weights * gaussian).to(scores.dtype), centres


def visible_span(scores: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The first key each query may see, and how many it may see; both (batch, …, query)."""
    if mask is None or scores.shape[-1] == 0:
        count = torch.full(scores.shape[:-1], scores.shape[-1], device=scores.device)
        return torch.zeros_like(count), count
    visible = mask.expand_as(scores)
    return visible.int().argmax(dim=-1), visible.sum(dim=-1)


def _key_positions(scores: Tensor) -> Tensor:
    return torch.arange(scores.shape[-1], device=scores.device)


def _window_mask(centres: Tensor, reach: int, scores: Tensor) -> Tensor:
    return (_key_positions(scores) - centres.unsqueeze(-1)).abs() <= reach  # (batch, …, query, key)


def _check_reach(reach: int) -> None:
    if reach < 1:
        raise ValueError(f"reach ({reach}) must be 1 or more: the window is [p − reach, p + reach]")
