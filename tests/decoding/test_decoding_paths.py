"""Greedy: the likeliest word each time."""

import pytest
import torch

from regard.decoding import DecodingConfig, greedy

FREE = DecodingConfig(longest=5, length_penalty="none")


def test_greedy_follows_the_argmax_chain(table, toys):
    model = table(7, steps=5, tables=3)
    rows = greedy(model, toys.sources([0], [1], [2]), torch.zeros(3, dtype=torch.long), FREE)
    for which, [found] in enumerate(rows):
        last, chain = 0, []
        for step in range(5):
            last = max(range(7), key=model.logits[which, step, last].__getitem__)
            chain.append(last)
        assert found.ids == tuple(chain)
        assert not found.ended


def test_its_score_is_the_log_probability_over_the_penalty(table, toys):
    model, config = table(5), DecodingConfig(longest=3, length_alpha=0.6)
    [[found]] = greedy(model, toys.sources([0]), torch.tensor([0]), config)
    logs = model.logits[0].double().log_softmax(-1)
    a, b, c = found.ids
    expected = float(logs[0, 0, a] + logs[1, a, b] + logs[2, b, c])
    assert found.log_probability == pytest.approx(expected, abs=1e-6)
    assert found.score == pytest.approx(expected / (8 / 6) ** 0.6, abs=1e-6)


def test_a_long_sum_loses_nothing(toys):
    model = toys.Table(torch.zeros(1, 1, 3, 3, dtype=torch.float64))
    [[found]] = greedy(model, toys.sources([0]), torch.tensor([0]), DecodingConfig(longest=701))
    assert found.log_probability == pytest.approx(-701 * 1.0986122886681098, abs=1e-9)  # log 3


def test_the_end_is_the_last_of_the_ids_and_nothing_follows_it(toys):
    logits = torch.full((1, 3, 3, 3), -5.0)
    logits[0, 0, 0, 2] = logits[0, 1, 2, 1] = logits[0, 2, 1, 2] = 5.0  # 2, then 1, the end
    [[found]] = greedy(toys.Table(logits), toys.sources([0]), torch.tensor([0]), FREE, end=1)
    assert found.ids == (2, 1)
    assert found.ended


def test_rows_that_are_done_leave_the_batch(toys):
    logits = torch.zeros(3, 4, 5, 5)
    for which, length in enumerate((1, 4, 2)):  # row 0 ends at once, row 2 after two words
        logits[which, : length - 1, :, 3] = 9.0
        logits[which, length - 1 :, :, 4] = 9.0
    model = toys.Table(logits)
    rows = greedy(model, toys.sources([0], [1], [2]), torch.zeros(3, dtype=torch.long), FREE, end=4)
    assert [row[0].ids for row in rows] == [(4,), (3, 3, 3, 4), (3, 4)]
    assert model.rows == [3, 2, 1, 1]
    assert model.picked == [[1, 2], [0]]


def test_no_row_is_picked_while_all_go_on(table, toys):
    model = table(5)
    greedy(model, toys.sources([0], [0]), torch.tensor([0, 1]), FREE)
    assert model.picked == []


def test_a_word_after_which_nothing_can_follow_is_the_last(toys):
    logits = torch.zeros(1, 3, 3, 3)
    logits[0, 0, 0, 2] = 1.0
    logits[0, 1] = -torch.inf
    [[found]] = greedy(toys.Table(logits), toys.sources([0]), torch.tensor([0]), FREE, end=1)
    assert found.ids == (2,)
    assert not found.ended
    assert found.log_probability == pytest.approx(float(logits[0, 0, 0].log_softmax(0)[2]))


def test_where_nothing_can_be_said_at_all_the_answer_is_empty(toys):
    model = toys.Table(torch.full((1, 1, 3, 3), -torch.inf))
    config = DecodingConfig(length_penalty="average")
    [[found]] = greedy(model, toys.sources([0]), torch.tensor([0]), config)
    assert (found.ids, found.score, found.ended) == ((), 0.0, False)


def test_an_empty_batch_has_no_answers(table, toys):
    batch = toys.sources([0]).pick(torch.empty(0, dtype=torch.long))
    assert greedy(table(3), batch, torch.empty(0, dtype=torch.long), FREE) == []
