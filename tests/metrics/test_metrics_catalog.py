"""Names of metrics, which way is up, and what a score prints."""

import math
import subprocess
import sys

import pytest

from regard.metrics import METRICS, Metric, Score, is_better, metric

UP = {"bleu", "chrf", "accuracy", "f1", "masked_accuracy", "nsp_accuracy", "exact_match",
      "pointing", "reward", "score", "r2"}  # fmt: skip
DOWN = {"perplexity", "loss", "bits", "wrong_bits", "aer", "mse"}


def test_every_plain_name_is_known_and_says_which_way_is_up():
    assert set(METRICS) == UP | DOWN
    for name, one in METRICS.items():
        assert one == metric(name)
        assert one.name == name
        assert one.higher_is_better == (name in UP)
        assert one.description and "\n" not in one.description


def test_a_misspelled_metric_is_answered_with_the_nearest_name():
    with pytest.raises(ValueError, match=r"metric \('blue'\) is not known; did you mean 'bleu'\?"):
        metric("blue")
    with pytest.raises(ValueError, match=r"did you mean 'perplexity'\?"):
        is_better("perplexty", 1.0, 2.0)


@pytest.mark.parametrize("name", sorted(UP | DOWN))
def test_only_a_step_in_the_right_direction_is_better(name):
    low, high = -1.5, 2.0
    assert is_better(name, high, low) == (name in UP)
    assert is_better(name, low, high) == (name in DOWN)
    assert not is_better(name, high, high)


@pytest.mark.parametrize("name", ["loss", "bleu"])
def test_any_number_beats_one_that_is_none(name):
    assert is_better(name, 3.0, math.nan)
    assert not is_better(name, math.nan, 3.0)
    assert not is_better(name, math.nan, math.nan)


def test_a_first_score_beats_infinity():
    assert is_better("loss", 9.0, math.inf)
    assert is_better("bleu", 0.0, -math.inf)


def test_a_score_prints_as_its_number_and_its_story():
    score = Score("f1", 59 / 90, "average:macro|classes:3")
    assert str(score) == "f1 0.6556 | average:macro|classes:3"
    assert score.details == {}


def test_scores_and_metrics_cannot_be_changed():
    with pytest.raises(AttributeError):
        Score("f1", 0.5, "").value = 1.0
    with pytest.raises(AttributeError):
        Metric("f1", True, "").higher_is_better = False


def test_importing_metrics_waits_for_neither_sacrebleu_nor_torch():
    code = (
        "import sys, regard.metrics as m\n"
        "slow = {'sacrebleu', 'torch', 'numpy'}\n"
        "assert not slow & set(sys.modules), slow & set(sys.modules)\n"
        "m.accuracy(['a'], ['a']), m.exact_match(['a'], ['a']), m.aer([m.Links({(0, 0)})] * 2,"
        " [m.Links({(0, 0)})] * 2), m.likelihood_scores(1.0, 2)\n"
        "assert 'sacrebleu' not in sys.modules\n"
        "m.bleu(['a'], ['a'])\n"
        "assert 'sacrebleu' in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
