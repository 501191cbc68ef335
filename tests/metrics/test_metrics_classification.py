"""Labels against the truth, by hand and by the examples of scikit-learn's documentation."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.metrics import ClassScores, accuracy, confusion, f1

# By hand: of three a's two are found; of two b's one; c is found, and is said once too often.
TRUTH = ["a", "a", "a", "b", "b", "c"]
SAID = ["a", "a", "b", "b", "c", "c"]

PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1)


def test_accuracy_is_the_share_of_labels_that_are_right():
    score = accuracy(SAID, TRUTH)
    assert (score.name, score.value) == ("accuracy", pytest.approx(4 / 6))
    assert score.signature == "classes:3"
    assert score.details == {"correct": 4.0, "count": 6.0}


def test_the_scores_of_every_class_are_those_worked_out_by_hand():
    scores = confusion(SAID, TRUTH).per_class
    assert list(scores) == ["a", "b", "c"]
    by_hand = {
        "a": (1.0, 2 / 3, 4 / 5, 3),
        "b": (1 / 2, 1 / 2, 1 / 2, 2),
        "c": (1 / 2, 1.0, 2 / 3, 1),
    }
    for name, (precision, recall, both, support) in by_hand.items():
        assert scores[name].precision == pytest.approx(precision)
        assert scores[name].recall == pytest.approx(recall)
        assert scores[name].f1 == pytest.approx(both)
        assert scores[name].support == support


def test_macro_f1_is_the_plain_mean_over_classes():
    score = f1(SAID, TRUTH)
    assert score == f1(SAID, TRUTH, average="macro")
    assert score.name == "f1"
    assert score.value == pytest.approx(59 / 90)  # (4/5 + 1/2 + 2/3) / 3
    assert score.details == pytest.approx({"precision": 2 / 3, "recall": 13 / 18})
    assert score.signature == "average:macro|classes:3"


def test_micro_f1_with_one_label_each_is_the_accuracy():
    score = f1(SAID, TRUTH, average="micro")
    assert score.value == pytest.approx(4 / 6)
    assert score.details == pytest.approx({"precision": 4 / 6, "recall": 4 / 6})
    assert score.signature == "average:micro|classes:3"


def test_binary_f1_is_about_the_positive_class_alone():
    truth = ["spam", "spam", "spam", "ham", "ham"]
    said = ["spam", "ham", "ham", "spam", "ham"]  # TP 1, FP 1, FN 2
    score = f1(said, truth, average="binary", positive="spam")
    assert score.value == pytest.approx(2 / 5)
    assert score.details == pytest.approx({"precision": 1 / 2, "recall": 1 / 3})
    assert score.signature == "average:binary|classes:2|positive:spam"
    ham = f1(said, truth, average="binary", positive="ham")  # TP 1, FP 2, FN 1
    assert ham.details == pytest.approx({"precision": 1 / 3, "recall": 1 / 2})


def test_zero_is_a_label_that_can_be_positive():
    assert f1([0, 1], [0, 0], average="binary", positive=0).value == pytest.approx(2 / 3)


def test_f1_is_that_of_the_example_in_scikit_learns_documentation():
    truth, said = [0, 1, 2, 0, 1, 2], [0, 2, 1, 0, 0, 1]
    per_class = confusion(said, truth).per_class.values()
    assert [scores.f1 for scores in per_class] == pytest.approx([0.8, 0.0, 0.0])
    assert [scores.precision for scores in per_class] == pytest.approx([2 / 3, 0.0, 0.0])
    assert f1(said, truth, average="macro").value == pytest.approx(0.8 / 3)
    assert f1(said, truth, average="micro").value == pytest.approx(1 / 3)


def test_the_confusion_is_that_of_the_example_in_scikit_learns_documentation():
    table = confusion([0, 0, 2, 2, 0, 2], [2, 0, 2, 2, 0, 1])
    rows = [[table.counts.get((true, said), 0) for said in range(3)] for true in range(3)]
    assert rows == [[2, 0, 0], [0, 0, 1], [1, 0, 2]]


def test_a_class_never_said_and_one_never_true_count_as_zero():
    table = confusion(["a", "new"], ["a", "lost"])
    assert table.per_class["lost"] == ClassScores(0.0, 0.0, 0.0, 1)  # precision 0/0
    assert table.per_class["new"] == ClassScores(0.0, 0.0, 0.0, 0)  # recall 0/0
    assert f1(["a", "new"], ["a", "lost"]).value == pytest.approx(1 / 3)  # (1 + 0 + 0) / 3


def test_nothing_to_find_and_nothing_found_is_zero():
    score = f1(["ham", "ham"], ["ham", "ham"], average="binary", positive="spam")
    assert (score.value, score.details) == (0.0, {"precision": 0.0, "recall": 0.0})


def test_a_confusion_reads_as_a_table():
    assert str(confusion(SAID, TRUTH)).splitlines() == [
        "truth \\ predicted  a  b  c  precision  recall     f1",
        "a                  2  1  0      1.000   0.667  0.800",
        "b                  0  1  1      0.500   0.500  0.500",
        "c                  0  0  1      0.500   1.000  0.667",
    ]


def test_a_table_gives_long_names_and_large_counts_their_room():
    table = str(confusion([1] * 12_345 + [-20], [1] * 12_345 + [1]))
    assert table.splitlines() == [
        "truth \\ predicted  -20      1  precision  recall     f1",
        "-20                  0      0      0.000   0.000  0.000",
        "1                    1  12345      1.000   1.000  1.000",
    ]


@pytest.mark.parametrize("kind", [torch.tensor, np.array, tuple])
def test_tensors_arrays_and_lists_of_numbers_score_alike(kind):
    said, truth = kind([3, 1, 4, 1, 5]), kind([3, 1, 4, 4, 4])
    assert accuracy(said, truth) == accuracy([3, 1, 4, 1, 5], [3, 1, 4, 4, 4])
    assert f1(said, truth) == f1([3, 1, 4, 1, 5], [3, 1, 4, 4, 4])
    assert confusion(said, [3, 1, 4, 4, 4]) == confusion([3, 1, 4, 1, 5], truth)


def test_a_tensor_of_batches_is_all_its_labels():
    said, truth = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([[1, 2, 0], [4, 0, 0]])
    assert accuracy(said, truth).details == {"correct": 3.0, "count": 6.0}
    assert accuracy(torch.tensor(7), torch.tensor(7)).value == 1.0
    assert accuracy(torch.tensor([True, False]), torch.tensor([True, True])).value == 0.5


def test_labels_may_be_numpys_own_numbers_and_strings():
    score = accuracy([np.int64(3), np.int64(4)], [3, 5])
    assert (score.value, type(score.value)) == (0.5, float)
    assert accuracy(np.array(["a", "b"]), ["a", "c"]).value == 0.5


@given(st.lists(st.integers(), min_size=1) | st.lists(st.text(), min_size=1))
def test_equal_labels_are_wholly_right(labels):
    assert accuracy(labels, list(labels)).value == 1.0
    assert f1(labels, labels, average="macro").value == 1.0
    assert f1(labels, labels, average="micro").value == 1.0
    assert all(true == said for true, said in confusion(labels, labels).counts)


@given(PAIRS)
def test_f1_is_the_harmonic_mean_of_precision_and_recall(pairs):
    said, truth = zip(*pairs, strict=True)
    for scores in confusion(said, truth).per_class.values():
        total = scores.precision + scores.recall
        mean = 2 * scores.precision * scores.recall / total if total else 0.0
        assert scores.f1 == pytest.approx(mean)


@given(PAIRS)
def test_changing_sides_changes_precision_for_recall(pairs):
    said, truth = zip(*pairs, strict=True)
    one, other = f1(said, truth), f1(truth, said)
    assert one.value == pytest.approx(other.value)
    assert one.details["precision"] == pytest.approx(other.details["recall"])
    assert accuracy(said, truth) == accuracy(truth, said)


@given(PAIRS)
def test_micro_f1_is_always_the_accuracy(pairs):
    said, truth = zip(*pairs, strict=True)
    assert f1(said, truth, average="micro").value == accuracy(said, truth).value


REFUSED = {
    "predicted (2,) and truth (3,) must be equally many labels": (["a", "b"], ["a", "b", "a"]),
    "predicted (2, 3) and truth (3, 2)": (torch.ones(2, 3).long(), torch.ones(3, 2).long()),
    "predicted and truth are empty": ([], []),
    "predicted ('yes') must be a list of labels, not one string": ("yes", ["y", "e", "s"]),
    "truth ('no') must be a list of labels, not one string": (["y", "e", "s"], "no"),
    "predicted[1] (0.5) must be a label: a string or a whole number": ([1, 0.5], [1, 1]),
    "predicted[0] (0.25) must be a label": (torch.tensor([0.25]), torch.tensor([1])),
    "truth[1] (None) must be a label": (["a", "b"], ["a", None]),
    "predicted[0] (3) and truth[0] ('cat') must be of one kind": ([3], ["cat"]),
    "truth[1] (2) and truth[0] ('cat') must be of one kind": (["cat", "dog"], ["cat", 2]),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_compared_is_refused_with_name_and_value(message):
    with pytest.raises(ValueError, match=re.escape(message)):
        accuracy(*REFUSED[message])


@pytest.mark.parametrize("measure", [accuracy, confusion, f1])
def test_every_measure_of_labels_refuses_what_cannot_be_compared(measure):
    with pytest.raises(ValueError, match=r"predicted\[0\] \(3\) and truth\[0\] \('cat'\)"):
        measure([3], ["cat"])


SETTINGS = {
    "average ('makro') is not known; did you mean 'macro'?": {"average": "makro"},
    "positive (None) with average 'binary'": {"average": "binary"},
    "positive ('a') with average 'macro'": {"positive": "a"},
    "positive ('a') with average 'micro'": {"average": "micro", "positive": "a"},
    "average ('binary') is for two classes, and there are 3": {
        "average": "binary",
        "positive": "a",
    },
}


@pytest.mark.parametrize("message", SETTINGS)
def test_a_setting_that_means_nothing_is_refused(message):
    with pytest.raises(ValueError, match=re.escape(message)):
        f1(SAID, TRUTH, **SETTINGS[message])


def test_a_positive_class_that_never_occurs_is_refused_when_both_others_do():
    with pytest.raises(ValueError, match=r"positive \('c'\) must be one of the classes \['a', 'b'"):
        f1(["a", "b"], ["a", "a"], average="binary", positive="c")
