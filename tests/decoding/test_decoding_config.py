"""What the [decoding] section accepts, refuses and divides by."""

import math

import pytest
from pydantic import TypeAdapter, ValidationError

from regard.decoding import DecodingConfig

WRONG = {
    r"method \('beams'\) must be one of greedy, sample, beam": {"method": "beams"},
    r"length_penalty \('mean'\) must be one of none, gnmt, average": {"length_penalty": "mean"},
    r"beam \(0\) must be 1 or more": {"beam": 0},
    r"longest \(0\) must be 1 or more": {"longest": 0},
    r"top_k \(0\) must be 1 or more": {"top_k": 0},
    r"no_repeat_ngram \(0\) must be 1 or more": {"no_repeat_ngram": 0},
    r"length_alpha \(-0.5\) must be between 0 and 10": {"length_alpha": -0.5},
    r"length_alpha \(1e\+308\) must be between 0 and 10": {"length_alpha": 1e308},
    r"length_alpha \(nan\) must be between 0 and 10": {"length_alpha": math.nan},
    r"beam \(1000000000\) must be at most 10000: each is a row": {"beam": 10**9},
    r"n_best \(1000000000\) must be at most 10000": {"method": "sample", "n_best": 10**9},
    r"temperature \(nan\) must be 0 or more, and finite": {"temperature": math.nan},
    r"temperature \(inf\) must be 0 or more": {"temperature": math.inf},
    r"top_p \(0.0\) must be above 0 and at most 1": {"top_p": 0.0},
    r"top_p \(1.5\) must be above 0 and at most 1": {"top_p": 1.5},
    r"longest_factor \(0.0\) must be above 0": {"longest_factor": 0.0},
    r"shortest \(7\) must be between 0 and longest \(5\)": {"shortest": 7, "longest": 5},
    r"shortest \(-1\) must be between": {"shortest": -1},
    r"n_best \(0\) must be 1 or more": {"n_best": 0},
    r"n_best \(7\) must be at most 5: a beam of 5": {"method": "beam", "n_best": 7},
    r"n_best \(2\) must be at most 1: the likeliest word": {"method": "greedy", "n_best": 2},
    r"n_best \(3\) must be at most 1": {"method": "sample", "temperature": 0.0, "n_best": 3},
}


@pytest.mark.parametrize("message", WRONG)
def test_a_number_that_cannot_work_is_refused_by_name(message: str):
    with pytest.raises(ValueError, match=message):
        DecodingConfig(**WRONG[message])


def test_gnmt_divides_by_its_published_formula():
    # ((5 + 7) / (5 + 1)) ^ 0.6 = 2 ^ 0.6
    assert DecodingConfig(length_alpha=0.6).penalty(7) == pytest.approx(1.5157165665)
    assert DecodingConfig(length_alpha=0.6).penalty(1) == 1.0


def test_average_divides_by_the_words_and_none_by_nothing():
    assert DecodingConfig(length_penalty="average").penalty(7) == 7.0
    assert DecodingConfig(length_penalty="average").penalty(0) == 1.0
    assert DecodingConfig(length_penalty="none").penalty(7) == 1.0


def test_a_recipe_is_checked_through_pydantic():
    adapter = TypeAdapter(DecodingConfig)
    made = adapter.validate_python({"method": "beam", "beam": 3, "n_best": 2})
    assert made == DecodingConfig(method="beam", beam=3, n_best=2)
    with pytest.raises(ValidationError, match="n_best"):
        adapter.validate_python({"method": "beam", "beam": 3, "n_best": 5})


@pytest.mark.parametrize(
    ("own", "settings", "method", "beam"),
    [
        ("greedy", {}, "greedy", 5),
        ("greedy", {"temperature": 0.7}, "sample", 5),
        ("greedy", {"top_k": 3}, "sample", 5),
        ("beam", {"top_p": 0.9}, "sample", 5),
        ("greedy", {"seed": 3, "n_best": 3}, "sample", 5),
        ("greedy", {"beam": 4}, "beam", 4),
        ("sample", {"beam": 4}, "beam", 4),
        ("beam", {"beam": 1}, "greedy", 1),
        ("greedy", {"n_best": 3}, "beam", 5),
        ("greedy", {"n_best": 7}, "beam", 7),
        ("sample", {"n_best": 3}, "sample", 5),
        ("beam", {"temperature": None, "beam": None}, "beam", 5),
        ("sample", {"method": "beam"}, "beam", 5),
    ],
)
def test_a_setting_switches_on_the_method_it_belongs_to(own, settings, method, beam):
    made = DecodingConfig(method=own).with_settings(**settings)
    assert (made.method, made.beam) == (method, beam)
    for name, value in settings.items():
        assert value is None or getattr(made, name) == value


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temprature": 0.7}, r"no setting 'temprature'; did you mean 'temperature'\?"),
        ({"temperature": 0.7, "beam": 4}, r"temperature \(0.7\) samples and beam \(4\) searches"),
        ({"method": "greedy", "top_k": 3}, r"top_k \(3\) means nothing to method greedy"),
        ({"method": "beam", "seed": 3}, r"seed \(3\) means nothing to method beam"),
        ({"method": "sample", "beam": 3}, r"beam \(3\) means nothing to method sample"),
        ({"beam": 2, "n_best": 3}, r"n_best \(3\) must be at most 2"),
        ({"method": "greedy", "n_best": 3}, r"n_best \(3\) must be at most 1"),
        ({"beam": "five"}, r"beam \('five'\) must be a whole number"),
        ({"beam": True}, r"beam \(True\) must be a whole number"),
        ({"longest": 2.5}, r"longest \(2.5\) must be a whole number"),
        ({"temperature": "hot"}, r"temperature \('hot'\) must be a number"),
    ],
)
def test_a_setting_that_does_not_apply_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        DecodingConfig().with_settings(**settings)
