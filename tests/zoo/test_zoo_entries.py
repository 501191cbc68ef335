"""The models that come with this checkout: small, whole, and as good as they are said to be."""

import json
from itertools import islice

import pytest

import regard
from benchmarks.sections import RESULTS
from benchmarks.zoo import CHECKOUT, MAX_ENTRY_BYTES, MAX_ZOO_BYTES, folder_bytes, is_entry
from regard.metrics import metric

ENTRIES = sorted(path.name for path in CHECKOUT.iterdir() if is_entry(path))
POINTS = {"bleu": 1.0, "chrf": 1.0, "perplexity": 1.0}
"""What a point is: 1 of these, a hundredth of a share, a loss or bits."""


@pytest.mark.skipif(not ENTRIES, reason="the zoo of this checkout is empty")
def test_the_zoo_is_small():
    sizes = {name: folder_bytes(CHECKOUT / name) for name in ENTRIES}
    assert max(sizes.values()) <= MAX_ENTRY_BYTES
    assert sum(sizes.values()) <= MAX_ZOO_BYTES


@pytest.mark.parametrize("name", ENTRIES)
def test_as_stored_it_scores_as_it_was_trained(name):
    stored, trained = (
        json.loads((place / name / "evaluation.json").read_text()) for place in (CHECKOUT, RESULTS)
    )
    scores = regard.load(CHECKOUT / name).recipe.evaluation.expected
    assert scores
    for each in scores:
        assert abs(stored[each] - trained[each]) <= 0.2 * POINTS.get(each, 0.01)


@pytest.mark.parametrize("name", ENTRIES)
def test_it_does_on_a_handful_of_examples_what_it_is_said_to_do(name):
    run = regard.load(CHECKOUT / name)
    try:
        values = run.evaluate(examples=handful(run))
    except ValueError as reason:
        if "is missing" not in str(reason):
            raise
        pytest.skip(f"{name}: {reason}")
    stored = json.loads((CHECKOUT / name / "evaluation.json").read_text())
    for each in run.recipe.evaluation.expected:
        if metric(each).higher_is_better:
            assert values[each] >= 0.8 * stored[each]
        else:
            assert values[each] <= 1.25 * stored[each]


def handful(run):
    """A few examples of the validation split; of made episodes, how long they are to be."""
    corpus = run.task.read("valid")
    if not hasattr(corpus, "__iter__"):
        return [10]
    some = list(islice(corpus, 64))
    if isinstance(some[0], list):  # documents, which are given as lines
        return [line for document in some for line in ("= Title =", *document)]
    return some
