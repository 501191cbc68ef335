"""The [decoding] section of a recipe: how the next word is chosen, and when enough is said."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from regard.naming import suggest

Method = Literal["greedy", "sample", "beam"]
Penalty = Literal["none", "gnmt", "average", "power"]
Stopping = Literal["exact", "hf", "hf-early", "hf-never"]
Weights = Literal["float32", "int8"]
INTEGER_SETTINGS = ("beam", "n_best", "longest", "shortest", "top_k", "no_repeat_ngram", "seed")
FLOAT_SETTINGS = ("temperature", "top_p", "length_alpha", "longest_factor")
SAMPLING_SETTINGS = ("temperature", "top_k", "top_p", "seed")  # mean nothing to other methods
MAX_HYPOTHESES = 10_000  # of one sentence


@dataclass(frozen=True, kw_only=True)
class DecodingConfig:
    """score = log P(words) / penalty(number of words), the end among them

    A longer sentence has a smaller probability, so without a penalty the search prefers to be
    short. `gnmt` divides by ((5 + n) / 6)^α, `power` by n^α, `average` by n, `none` by 1.

    A beam ends by its `stopping`: `exact` when no answer can change any more; with `hf` it gives
    the words that Hugging Face's `generate` gives, whose `length_penalty` is the α of `power` (1.0
    unless said otherwise), `hf-early` and `hf-never` with its `early_stopping` True and "never".

    Wu et al. (2016), section 7, equation 14.
    """

    method: Method = "greedy"
    beam: int = 5  # hypotheses of a sentence that go on side by side
    length_penalty: Penalty = "gnmt"  # what log P is divided by
    length_alpha: float = 0.6  # α, for gnmt and power
    stopping: Stopping = "exact"  # when a beam is done; hf: as Hugging Face's `generate`
    n_best: int = 1  # hypotheses handed back: of the beam, or draws of the sampler
    temperature: float = 1.0  # 0 is greedy
    top_k: int | None = None  # draw from the k likeliest words only
    top_p: float = 1.0  # draw from the fewest words that hold this much probability
    seed: int = 0  # of the draws
    longest: int = 256  # words, the end among them
    longest_factor: float | None = None  # also no more than this times the length of the source
    shortest: int = 0  # words before the end may come
    no_repeat_ngram: int | None = None  # no n words in a row are said twice
    sliding: bool = False  # of a prompt longer than the model's positions the last words are read
    weights: Weights = "float32"  # int8: matrices in 8 bits while decoding, for speed

    def __post_init__(self) -> None:
        self._check_names()
        self._check_numbers()
        self._check_n_best()

    def with_settings(self, **settings: Any) -> DecodingConfig:
        """A copy with these settings; None leaves one as it is.

        A setting that belongs to one method switches that method on: a temperature samples, a beam
        searches, and several answers without a temperature are those of a beam. One that means
        nothing to the method asked for is refused.
        """
        given = {name: value for name, value in settings.items() if value is not None}
        known = [field.name for field in fields(self)]
        for name in given:
            if name not in known:
                raise ValueError(f"decoding has no setting {name!r}; {suggest(name, known)}")
            _check_type(name, given[name])
        given["method"] = self._resolve_method(given)
        if given["method"] == "beam" and "beam" not in given:
            given["beam"] = max(self.beam, given.get("n_best", 1))
        return replace(self, **given)

    def _resolve_method(self, given: dict[str, Any]) -> Method:
        """The method that these settings ask for, if they agree on one."""
        sampling = [f"{name} ({given[name]})" for name in SAMPLING_SETTINGS if name in given]
        searching = [f"beam ({given['beam']})"] if given.get("beam", 1) != 1 else []
        if "method" in given:
            method = given["method"]
            unused = {"greedy": sampling + searching, "sample": searching, "beam": sampling}
            if unused.get(method):
                raise ValueError(f"{unused[method][0]} means nothing to method {method}")
            return method
        if sampling and searching:
            raise ValueError(f"{sampling[0]} samples and {searching[0]} searches: choose one")
        if sampling:
            return "sample"
        if "beam" in given:
            return "beam" if searching else "greedy"
        return "beam" if self.method == "greedy" and given.get("n_best", 1) > 1 else self.method

    def penalty(self, words: int) -> float:
        """What log P of so many words is divided by."""
        if self.length_penalty == "gnmt":
            return ((5.0 + words) / 6.0) ** self.length_alpha
        if self.length_penalty == "power":
            return float(max(words, 1)) ** self.length_alpha
        # Whoever could say nothing has said it with probability 1, and need not divide by 0.
        return float(max(words, 1)) if self.length_penalty == "average" else 1.0

    def _check_names(self) -> None:
        named = ("method", "length_penalty", "stopping", "weights")
        for name, kind in zip(named, (Method, Penalty, Stopping, Weights), strict=True):
            value = getattr(self, name)
            if value not in get_args(kind):
                raise ValueError(f"{name} ({value!r}) must be one of {', '.join(get_args(kind))}")

    def _check_numbers(self) -> None:
        for name in ("beam", "n_best", "longest", "top_k", "no_repeat_ngram"):
            value = getattr(self, name)
            _check(value is None or value >= 1, name, value, "1 or more")
        for name in ("beam", "n_best"):
            value = getattr(self, name)
            allowed = f"at most {MAX_HYPOTHESES}: each is a row of the batch"
            _check(value <= MAX_HYPOTHESES, name, value, allowed)
        alpha, temperature = self.length_alpha, self.temperature
        _check(0.0 <= alpha <= 10.0, "length_alpha", alpha, "between 0 and 10")
        good = 0.0 <= temperature < math.inf
        _check(good, "temperature", temperature, "0 or more, and finite")
        _check(0.0 < self.top_p <= 1.0, "top_p", self.top_p, "above 0 and at most 1")
        factor = self.longest_factor
        good = factor is None or 0.0 < factor < math.inf
        _check(good, "longest_factor", factor, "above 0, and finite")
        fits = 0 <= self.shortest <= self.longest
        _check(fits, "shortest", self.shortest, f"between 0 and longest ({self.longest})")

    def _check_n_best(self) -> None:
        if self.method == "beam":
            most, why = self.beam, f"a beam of {self.beam} finds no more"
        elif self.method == "greedy" or self.temperature == 0.0:
            most, why = 1, "the likeliest word each time makes one answer"
        else:
            return
        _check(self.n_best <= most, "n_best", self.n_best, f"at most {most}: {why}")


def _check(good: bool, name: str, value: Any, expected: str) -> None:
    if not good:
        raise ValueError(f"{name} ({value}) must be {expected}")


def _check_type(name: str, value: Any) -> None:
    """Refuse what is no number where one is wanted, `True` among it."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if name in INTEGER_SETTINGS:
        _check(number and isinstance(value, int), name, repr(value), "a whole number")
    elif name in FLOAT_SETTINGS:
        _check(number, name, repr(value), "a number")
