"""How far back a model looks."""

from __future__ import annotations

import pytest
import torch

from regard.attention import Call, edit
from regard.data.buckets import Sentences
from regard.data.streams import Columns
from regard.models import AttentiveConfig, AttentiveLM, RecurrentConfig, RecurrentLM
from regard.models.lstmn import LSTMNLM, LSTMNConfig
from regard.tasks.reach import share_of_last


def even_model(window: int, include_current: bool = False) -> AttentiveLM:
    """Scores of a zero vector are all alike, so every visible word gets the same weight."""
    config = AttentiveConfig(
        vocabulary_size=11,
        hidden_size=8,
        layers=1,
        window=window,
        include_current=include_current,
    )
    model = AttentiveLM(config).eval()
    for weight in model.attention.parameters():
        torch.nn.init.zeros_(weight)
    return model


def feed() -> Columns:
    return Columns(torch.arange(121) % 11, batch=2, length=10)


def test_of_ten_words_looked_at_alike_the_last_five_have_half():
    # A row has 60 positions: 10 see fewer than ten words, and of these 6, 7, 8 and 9 count.
    shares = [5 / seen for seen in (6, 7, 8, 9)] + [0.5] * 50
    assert share_of_last(even_model(10), feed()) == pytest.approx(sum(shares) / len(shares))


def test_the_current_word_is_one_of_the_five():
    # Ten earlier words and the current one, eleven in all.
    shares = [5 / seen for seen in (6, 7, 8, 9, 10)] + [5 / 11] * 50
    share = share_of_last(even_model(10, include_current=True), feed())
    assert share == pytest.approx(sum(shares) / len(shares))


def test_where_only_five_can_be_seen_there_is_nothing_to_say():
    assert share_of_last(even_model(5), feed()) == 0.0


def test_what_fills_up_a_row_is_not_asked_where_it_looks():
    model = even_model(10)

    def change(weights, visible, call):
        far, near = farthest(weights, visible, call), nearest(weights, visible, call)
        return torch.stack([far[0], near[1]])

    # The words of the long row look at the nearest; behind the short row there are no words.
    sentences = Sentences([[2] * 3, [1] * 12], end=0, tokens=64)
    with edit(model, {"attention": change}):
        assert share_of_last(model, sentences) == pytest.approx(1.0)


def test_sentences_of_different_number_are_looked_at_batch_by_batch():
    sentences = Sentences([[1] * 12, [2] * 3, [3] * 2], end=0, tokens=13)
    shares = [5 / seen for seen in (6, 7, 8, 9, 10, 10, 10)]
    assert share_of_last(even_model(10), sentences) == pytest.approx(sum(shares) / 7)


def test_a_model_that_looks_one_word_at_a_time_is_asked_about_each_of_them():
    model = LSTMNLM(LSTMNConfig(vocabulary_size=11, hidden_size=8)).eval()
    torch.nn.init.zeros_(model.layers[0].attention.score.direction)  # all words alike
    sentences = Sentences([[1] * 9, [2] * 6], end=0, tokens=64)
    shares = [5 / seen for seen in (6, 7, 8, 9)] + [5 / 6]
    assert share_of_last(model, sentences) == pytest.approx(sum(shares) / 5)


def test_weight_moved_to_the_nearest_word_is_all_of_it():
    model = even_model(10)
    with edit(model, {"attention": nearest}):
        assert share_of_last(model, feed()) == pytest.approx(1.0)
    with edit(model, {"attention": farthest}):
        assert share_of_last(model, feed()) == pytest.approx(0.0)


def nearest(weights: torch.Tensor, visible: torch.Tensor, call: Call) -> torch.Tensor:
    last = weights.shape[-1] - 1 - visible.expand_as(weights).int().flip(-1).argmax(-1)
    return torch.nn.functional.one_hot(last, weights.shape[-1]).to(weights)


def farthest(weights: torch.Tensor, visible: torch.Tensor, call: Call) -> torch.Tensor:
    first = visible.expand_as(weights).int().argmax(-1)
    return torch.nn.functional.one_hot(first, weights.shape[-1]).to(weights)


def test_a_model_without_attention_does_not_look_back():
    feed = Columns(torch.arange(9) % 11, 1, 8)
    model = RecurrentLM(RecurrentConfig(vocabulary_size=11, hidden_size=8))
    assert share_of_last(model, feed) is None
