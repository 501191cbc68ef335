import math

import pytest
import torch
from torch import nn

from regard.lectures.any_b import accuracy, strings


def by_run(lesson):
    rows = lesson.numbers["accuracy"]
    return {(row["loss_at"], row["model"], row["length"]): row["accuracy"] for row in rows}


def test_a_b_is_foretold_from_the_first_b_on():
    symbols, targets = strings(5)
    assert symbols.tolist() == [[0, 0, 0, 0, 0], [1, 0, 0, 0, 0]]
    assert targets.tolist() == [[0, 0, 0, 0, 0], [1, 1, 1, 1, 1]]


class Saying(nn.Module):
    """The same logits for the two strings, or others."""

    def __init__(self, *logits):
        super().__init__()
        self.logits = torch.tensor(logits)

    def forward(self, symbols):
        return self.logits.unsqueeze(1).expand(-1, symbols.shape[1], -1)


@pytest.mark.parametrize(
    ("logits", "expected"),
    [
        ([[4.0, 0.0], [0.0, 4.0]], 1.0),
        ([[0.0, 4.0], [4.0, 0.0]], 0.0),
        ([[0.0, 4.0], [0.0, 4.0]], 0.5),
        ([[1e-7, 0.0], [0.0, 1e-7]], 0.5),  # right by rounding is no better than a coin
    ],
)
def test_accuracy_counts_decisions_and_not_roundings(logits, expected):
    assert accuracy(Saying(*logits), 3) == expected


def test_over_a_long_gap_only_attention_learns_from_the_last_position_alone(played):
    reached = by_run(played("any-b"))
    assert {model: reached["last", model, 5] for model in ("RNN", "LSTM", "attention")} == {
        "RNN": 1.0,
        "LSTM": 1.0,
        "attention": 1.0,
    }
    assert {model: reached["last", model, 40] for model in ("RNN", "LSTM", "attention")} == {
        "RNN": 0.5,
        "LSTM": 0.5,
        "attention": 1.0,
    }


def test_judged_at_every_position_a_plain_rnn_learns_it_too(played):
    reached = by_run(played("any-b"))
    assert reached["every", "RNN", 40] == 1.0
    assert reached["every", "attention", 40] == 1.0


def test_one_head_is_outvoted_by_very_many_as(played):
    on_b = {row["n"]: row["weight_on_b"] for row in played("any-b").numbers["one_head"]}
    for n, weight in on_b.items():
        assert weight == pytest.approx(math.exp(10) / (math.exp(10) + n - 1), rel=1e-9)
    assert on_b[1_000] == pytest.approx(0.957, abs=5e-4)
    assert on_b[100_000] == pytest.approx(0.18, abs=5e-3)


def test_the_trained_attention_looks_at_the_b(played):
    lesson = played("any-b")
    assert lesson.numbers["head_on_b"]["length"] == 40
    assert max(lesson.numbers["head_on_b"]["weights"]) > 0.9
    (look,) = lesson.looks
    assert [label.text for label in look.keys] == ["B", "A", "A", "A", "A"]
    assert look.weights.shape == (4, 1, 5)


def test_the_losses_are_drawn_and_the_unlearned_stay_at_a_coin(played):
    (curves,) = played("any-b").curves
    assert curves.series["RNN"][-1] == pytest.approx(math.log(2), abs=1e-3)
    assert curves.series["LSTM"][-1] == pytest.approx(math.log(2), abs=1e-3)
    assert curves.series["attention"][-1] < 0.01


@pytest.mark.slow
def test_the_whole_lecture_takes_under_two_minutes_and_keeps_its_word_at_length_200(whole_any_b):
    reached = by_run(whole_any_b)
    assert whole_any_b.numbers["plan"]["lengths"] == [10, 50, 200]
    assert reached["last", "RNN", 200] == reached["last", "LSTM", 200] == 0.5
    assert reached["last", "attention", 200] == 1.0
    assert reached["every", "RNN", 200] > 0.8
    assert reached["last", "RNN", 10] == reached["last", "LSTM", 10] == 1.0
    assert whole_any_b.numbers["seconds"] < 120
