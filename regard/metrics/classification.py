"""Labels against the true ones: accuracy, F1, and which class was taken for which.

For a class c, with TP rightly called c, FP wrongly called c, FN wrongly called something else:

    precision = TP / (TP + FP)      recall = TP / (TP + FN)      F1 = 2 TP / (2 TP + FP + FN)

A share of nothing (0 / 0) is 0, as with `zero_division=0` in scikit-learn. The classes are all
labels that occur, in the truth or among the predictions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from operator import eq
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeAlias

from regard.metrics.score import Score
from regard.naming import suggest

if TYPE_CHECKING:  # importing metrics must not wait for torch
    from numpy.typing import NDArray
    from torch import Tensor

Label: TypeAlias = str | int
Labels: TypeAlias = "Sequence[Label] | Tensor | NDArray[Any]"

AVERAGES = ("macro", "micro", "binary")


@dataclass(frozen=True)
class ClassScores:
    """How well one class was told from the others."""

    precision: float
    recall: float
    f1: float
    support: int  # how often it is the truth


@dataclass(frozen=True)
class Confusion:
    """How often each class was taken for which.

    print(confusion(["cat", "dog", "dog"], ["cat", "cat", "dog"]))

    truth \\ predicted  cat  dog  precision  recall     f1
    cat                  1    1      1.000   0.500  0.667
    dog                  0    1      0.500   1.000  0.667
    """

    counts: dict[tuple[Label, Label], int]  # (truth, predicted): how often; never, if left out

    @cached_property
    def classes(self) -> list[Label]:
        """All labels that occur, sorted."""
        # Either all are strings or all are numbers, which `confusion` has seen to.
        return sorted({label for pair in self.counts for label in pair})

    @cached_property
    def per_class(self) -> dict[Label, ClassScores]:
        """Precision, recall, F1 and support of every class."""
        truth: Counter[Label] = Counter()
        predicted: Counter[Label] = Counter()
        for (true, given), count in self.counts.items():
            truth[true] += count
            predicted[given] += count
        scores = {}
        for each in self.classes:
            right = self.counts.get((each, each), 0)
            scores[each] = ClassScores(
                precision=_divide(right, predicted[each]),
                recall=_divide(right, truth[each]),
                f1=_divide(2 * right, predicted[each] + truth[each]),  # 2 TP + FP + FN
                support=truth[each],
            )
        return scores

    def __str__(self) -> str:
        head = ["truth \\ predicted", *map(str, self.classes), "precision", "recall", "f1"]
        rows = [head]
        for true, scores in self.per_class.items():
            counts = [str(self.counts.get((true, given), 0)) for given in self.classes]
            shares = [f"{s:.3f}" for s in (scores.precision, scores.recall, scores.f1)]
            rows.append([str(true), *counts, *shares])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(
                [row[0].ljust(widths[0])]
                + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            )
            for row in rows
        )


def confusion(predicted: Labels, truth: Labels) -> Confusion:
    """Count which class was taken for which."""
    given, true = _pair_up(predicted, truth)
    return Confusion(dict(Counter(zip(true, given, strict=True))))


def accuracy(predicted: Labels, truth: Labels) -> Score:
    """accuracy = labels that are right / all labels"""
    given, true = _pair_up(predicted, truth)
    right = int(sum(map(eq, given, true)))  # numpy's labels would add up to a number of its own
    classes = len(set(given).union(true))
    details = {"correct": float(right), "count": float(len(true))}
    return Score("accuracy", right / len(true), f"classes:{classes}", details)


def f1(
    predicted: Labels, truth: Labels, average: str = "macro", positive: Label | None = None
) -> Score:
    """F1 = 2 TP / (2 TP + FP + FN), which is the harmonic mean of precision and recall.

    average="macro"   the plain mean over all classes, rare ones counting as much as frequent ones
    average="micro"   TP, FP and FN summed over all classes; with one label each, the accuracy
    average="binary"  of the class `positive` alone, where there are no more than two

    `details` has precision and recall under the same average.
    """
    if average not in AVERAGES:
        raise ValueError(f"average ({average!r}) is not known; {suggest(average, AVERAGES)}")
    if (positive is None) == (average == "binary"):
        raise ValueError(
            f"positive ({positive!r}) with average {average!r}: 'binary' needs the class that "
            "counts as found, 'macro' and 'micro' have none"
        )
    table = confusion(predicted, truth)
    signature = f"average:{average}|classes:{len(table.classes)}"
    if average == "micro":
        # A label that is wrong is one FP for its own class and one FN for the true one.
        right = sum(count for (true, given), count in table.counts.items() if true == given)
        precision = recall = value = right / sum(table.counts.values())
    elif positive is not None:
        scores = _score_positive(table, positive)
        precision, recall, value = scores.precision, scores.recall, scores.f1
        signature += f"|positive:{positive}"
    else:
        scores_of_all = table.per_class.values()
        precision = fmean(scores.precision for scores in scores_of_all)
        recall = fmean(scores.recall for scores in scores_of_all)
        value = fmean(scores.f1 for scores in scores_of_all)
    return Score("f1", value, signature, {"precision": precision, "recall": recall})


def _score_positive(table: Confusion, positive: Label) -> ClassScores:
    classes = table.classes
    if len(classes) > 2:
        raise ValueError(
            f"average ('binary') is for two classes, and there are {len(classes)}: "
            f"take 'macro' or 'micro', or confusion(…).per_class[{positive!r}]"
        )
    if len(classes) == 2 and positive not in classes:
        raise ValueError(f"positive ({positive!r}) must be one of the classes {classes}")
    # With one class only, and that the other one, there was nothing to find and nothing was found.
    return table.per_class.get(positive, ClassScores(0.0, 0.0, 0.0, 0))


def _pair_up(predicted: Labels, truth: Labels) -> tuple[list[Label], list[Label]]:
    """Both as lists of plain labels, equally many and of one kind."""
    for name, labels in (("predicted", predicted), ("truth", truth)):
        if isinstance(labels, str):
            raise ValueError(f"{name} ({labels!r}) must be a list of labels, not one string")
    if _shape(predicted) != _shape(truth):
        raise ValueError(
            f"predicted {_shape(predicted)} and truth {_shape(truth)} must be equally many labels"
        )
    given, true = _to_labels("predicted", predicted), _to_labels("truth", truth)
    if not true:
        raise ValueError("predicted and truth are empty: a share of nothing is no number")
    for name, plain in (("predicted", given), ("truth", true)):
        place = _find_wrong_type(
            plain, lambda kind: issubclass(kind, str) != isinstance(true[0], str)
        )
        if place is not None:
            raise ValueError(
                f"{name}[{place}] ({plain[place]!r}) and truth[0] ({true[0]!r}) must be of one "
                "kind, both names or both numbers: they would never be equal"
            )
    return given, true


def _shape(labels: Labels) -> tuple[int, ...]:
    return (len(labels),) if isinstance(labels, Sequence) else tuple(labels.shape)


def _to_labels(name: str, labels: Labels) -> list[Label]:
    # Tensors and arrays give plain numbers all at once; one by one would be slow.
    plain = list(labels) if isinstance(labels, Sequence) else labels.flatten().tolist()
    place = _find_wrong_type(plain, lambda kind: not issubclass(kind, (str, int, Integral)))
    if place is not None:
        raise ValueError(
            f"{name}[{place}] ({plain[place]!r}) must be a label: a string or a whole number"
        )
    return plain


def _find_wrong_type(labels: list[Label], is_wrong: Callable[[type], bool]) -> int | None:
    """Where the first label of a wrong type stands, if there is one."""
    # Types are few and labels may be millions, so types are asked first.
    wrong = {kind for kind in set(map(type, labels)) if is_wrong(kind)}
    return (
        next((n for n, label in enumerate(labels) if type(label) in wrong), None) if wrong else None
    )


def _divide(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
