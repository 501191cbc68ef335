"""What must not be said, and how much may be."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from regard.data.batches import Words
from regard.decoding import DecodingConfig, beam, greedy, sample
from regard.decoding.rules import Rules, max_lengths

WAYS = [greedy, sample, beam]


def barred(rules: Rules, said: list[list[int]], vocabulary: int = 7) -> list[set[int]]:
    logs = torch.zeros(len(said), vocabulary)
    allowed = rules.apply(logs, torch.tensor(said, dtype=torch.long).view(len(said), -1))
    assert_close(logs, torch.zeros(len(said), vocabulary))  # what came in is as it was
    return [set(row.isneginf().nonzero().flatten().tolist()) for row in allowed]


def test_a_bigram_said_before_is_not_begun_again():
    rules = Rules(None, (), 0, no_repeat_ngram=2)
    # 3 was followed by 5 and by 2; 4 is new in the second row.
    assert barred(rules, [[3, 5, 3, 2, 3], [3, 5, 3, 2, 4]]) == [{5, 2}, set()]


def test_a_trigram_needs_two_words_to_be_recognised():
    rules = Rules(None, (), 0, no_repeat_ngram=3)
    assert barred(rules, [[1, 2, 3, 1, 2], [1, 2, 3, 2, 2]]) == [{3}, set()]


def test_a_repeated_unigram_is_a_repeated_word():
    assert barred(Rules(None, (), 0, no_repeat_ngram=1), [[3, 5], [5, 6]]) == [{3, 5}, {5, 6}]


def test_the_end_waits_for_the_shortest_length():
    rules = Rules(4, (2,), shortest=2, no_repeat_ngram=None)
    assert barred(rules, [[0]]) == [{2, 4}]
    assert barred(rules, [[0, 1]]) == [{2}]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 9999), ngram=st.integers(1, 3), way=st.sampled_from(WAYS))
def test_no_ngram_is_said_twice(table, toys, seed, ngram, way):
    model = table(3, seed=seed)
    config = DecodingConfig(no_repeat_ngram=ngram, longest=13, seed=seed, beam=3)
    [[found]] = way(model, toys.sources([0]), torch.tensor([0]), config)
    grams = [found.ids[i : i + ngram] for i in range(len(found.ids) - ngram + 1)]
    assert len(set(grams)) == len(grams)
    assert len(found.ids) <= 3**ngram + ngram - 1  # as many as there are


@pytest.mark.parametrize("way", WAYS)
def test_lengths_stay_between_the_shortest_and_the_longest(way, toys):
    logits = torch.zeros(1, 1, 3, 3)
    logits[..., 1] = 30.0  # nothing but the end is likely
    config = DecodingConfig(shortest=3, longest=5)
    [[found]] = way(toys.Table(logits), toys.sources([0]), torch.tensor([0]), config, end=1)
    assert len(found.ids) == 4
    assert found.ended
    [[found]] = way(toys.Table(-logits), toys.sources([0]), torch.tensor([0]), config, end=1)
    assert len(found.ids) == 5
    assert not found.ended


@pytest.mark.parametrize("way", WAYS)
def test_a_source_limits_its_own_answer_and_not_its_neighbours(way, toys):
    logits = torch.zeros(1, 1, 5, 5)
    logits[..., 1] = -30.0
    config = DecodingConfig(longest=7, longest_factor=1.5, length_penalty="none")
    batch, first = toys.sources([0], [0, 0], [0, 0, 0, 0, 0]), torch.zeros(3, dtype=torch.long)
    rows = way(toys.Table(logits), batch, first, config, end=1)
    assert [len(found.ids) for [found] in rows] == [2, 3, 7]  # ⌈1.5⌉, 3, and longest below ⌈7.5⌉


def test_a_source_of_nothing_still_leaves_one_word(toys):
    batch = toys.sources([], [0, 0])
    config = DecodingConfig(longest_factor=0.25)
    assert max_lengths(config, batch, torch.tensor([0, 0])).tolist() == [1, 1]


def test_a_factor_needs_a_source():
    batch, config = Words.prompts([[1]]), DecodingConfig(longest_factor=2.0)
    with pytest.raises(ValueError, match=r"longest_factor \(2.0\) needs a source.* Words has none"):
        max_lengths(config, batch, torch.tensor([0]))


@pytest.mark.parametrize("way", WAYS)
def test_what_must_never_be_said_is_not(way, table, toys):
    model, config = table(5), DecodingConfig(longest=11)
    [[found]] = way(model, toys.sources([0]), torch.tensor([0]), config, never=(0, 2, 3))
    assert set(found.ids) <= {1, 4}


@pytest.mark.parametrize("way", WAYS)
def test_a_barred_word_keeps_its_probability_to_itself(way, toys):
    logits = torch.tensor([0.5, 0.3, 0.2]).log().expand(1, 1, 3, 3)
    config = DecodingConfig(longest=1, length_penalty="none")
    model, batch, first = toys.Table(logits), toys.sources([0]), torch.tensor([0])
    [[found]] = way(model, batch, first, config, never=(0, 1))
    assert found.ids == (2,)
    assert found.log_probability == pytest.approx(-1.6094379)  # log 0.2


@pytest.mark.parametrize("way", WAYS)
def test_when_every_word_is_barred_the_answer_is_what_was_said(way, table, toys):
    model, config = table(3), DecodingConfig(longest=9, no_repeat_ngram=1)
    [[found]] = way(model, toys.sources([0]), torch.tensor([0]), config)
    assert sorted(found.ids) == [0, 1, 2]
    assert not found.ended


def test_words_outside_the_vocabulary_cannot_be_named(table, toys):
    call = (table(3), toys.sources([0]), torch.tensor([0]), DecodingConfig())
    with pytest.raises(ValueError, match=r"end \(3\) is not in a vocabulary of 3 words"):
        greedy(*call, end=3)
    with pytest.raises(ValueError, match=r"never \(-1\) is not in a vocabulary of 3 words"):
        greedy(*call, never=(-1,))
