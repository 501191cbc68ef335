"""Batches are a pure function of (seed, epoch, index)."""

import pytest
import torch

from regard.data.buckets import LengthBuckets, PerEpochTranslations, Sentences, Translations
from regard.data.feeds import random_stream
from regard.data.streams import Columns, Packed, PackedInOrder, Windows


def test_columns_predict_every_word_but_the_first_exactly_once():
    stream = torch.arange(103)
    feed = Columns(stream, batch=7, length=5)
    said = []
    for index in range(feed.batches(0)):
        batch = feed.batch(0, index)
        assert torch.equal(batch.targets[batch.mask], batch.inputs[batch.mask] + 1)
        said += batch.targets[batch.mask].tolist()
    assert sorted(said) == list(range(1, 103))


def test_a_column_goes_on_where_it_stopped():
    feed = Columns(torch.arange(71), batch=2, length=5)
    first, second = feed.batch(0, 0), feed.batch(0, 1)
    assert torch.equal(second.inputs[:, 0], first.targets[:, -1])


def test_the_words_of_columns_are_the_text():
    stream = torch.tensor([9, 4, 4, 2, 9, 1, 2])
    assert Columns(stream, batch=3, length=2).words().tolist() == [4, 4, 2, 9, 1, 2]


def test_windows_are_pieces_of_the_text_and_the_same_whenever_asked():
    stream = torch.arange(1009)
    one, other = (Windows(stream, batch=5, length=11, seed=3) for _ in range(2))
    for epoch, index in ((2, 7), (0, 0), (2, 7)):
        batch = one.batch(epoch, index)
        assert torch.equal(batch.inputs, other.batch(epoch, index).inputs)
        assert torch.equal(batch.targets, batch.inputs + 1)
        assert torch.equal(batch.inputs[:, 1:], batch.inputs[:, :-1] + 1)


def test_another_seed_or_epoch_or_index_draws_other_windows():
    stream = torch.arange(10_007)
    draws = [
        Windows(stream, 5, 11, seed).batch(epoch, index).inputs[:, 0].tolist()
        for seed, epoch, index in ((1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1))
    ]
    assert len({tuple(draw) for draw in draws}) == 4


def test_neighbouring_streams_have_nothing_in_common():
    draws = torch.stack(
        [torch.rand(997, generator=random_stream(1, 0, index)) for index in range(50)]
    )
    correlations = torch.corrcoef(draws) - torch.eye(50)
    assert correlations.abs().max() < 0.2


def test_buckets_hold_every_example_once_and_keep_to_their_budget():
    lengths = torch.randint(1, 30, (211,), generator=torch.Generator().manual_seed(1)).tolist()
    plan = LengthBuckets(lengths, tokens=64, seed=5).plan(3)
    assert sorted(i for batch in plan for i in batch) == list(range(211))
    assert all(len(batch) * max(lengths[i] for i in batch) <= 64 for batch in plan)


def test_an_example_longer_than_the_budget_stands_alone():
    plan = LengthBuckets([100, 3, 3], tokens=16, seed=None).plan(0)
    assert plan == ((1, 2), (0,))


def test_sentences_begin_after_the_end_and_are_closed_by_it():
    batch = Sentences([[5, 6], [7]], end=2, tokens=64).batch(0, 0)
    assert batch.inputs.tolist() == [[2, 7, 2], [2, 5, 6]]
    assert batch.targets.tolist() == [[7, 2, 2], [5, 6, 2]]
    assert batch.mask.tolist() == [[True, True, False], [True, True, True]]
    assert batch.tokens == 5


def test_translations_shift_the_target_behind_its_start():
    batch = Translations([([5], [6, 7])], start=1, end=2, pad=0, tokens=64).batch(0, 0)
    assert batch.source.tolist() == [[5]]
    assert batch.target_input.tolist() == [[1, 6, 7]]
    assert batch.target_output.tolist() == [[6, 7, 2]]


def test_redrawn_pairs_are_those_of_the_epoch_whenever_asked():
    whole = Translations([([5], [6]), ([7, 8], [9])], start=0, end=1, pad=2, tokens=100, seed=3)
    feed = PerEpochTranslations(
        lambda epoch: whole.with_pairs([([5 + epoch], [6]), ([7] * epoch, [9])])
    )
    for epoch in (1, 2, 4, 1):
        rows = feed.batch(epoch, 0).source.tolist()
        assert sorted(rows) == sorted([[5 + epoch] + [2] * (epoch - 1), [7] * epoch])
    assert feed.batches(3) == 1 and feed.summary == "2 pairs"


def test_packed_words_are_never_predicted_from_another_sentence():
    sentences = [[10, 11, 12], [20, 21], [30, 31, 32, 33]]
    feed = Packed(sentences, batch=2, length=4, seed=1)
    for index in range(feed.batches(0)):
        batch = feed.batch(0, index)
        counts = batch.loss_mask
        assert torch.equal(batch.targets[counts], batch.inputs[counts] + 1)


def test_a_packed_word_that_is_asked_for_nothing_is_real_all_the_same():
    feed = Packed([[10, 11, 12], [20, 21], [30, 31, 32, 33]], batch=3, length=4, seed=1)
    batch = feed.batch(0, 0)  # nine words in two rows of five, the last place filled up
    assert int(batch.mask.sum()) == 8  # all but the last word of each row are read
    assert int(batch.loss_mask.sum()) == batch.tokens < 8
    assert not bool((batch.loss_mask & ~batch.mask).any())


def test_packed_in_order_every_target_comes_once_and_from_its_own_sentence():
    sentences = [[10, 11, 12], [20, 21], [30, 31, 32, 33, 34, 35, 36, 37], [40], [50, 51]]
    feed = PackedInOrder(sentences, batch=2, length=3)
    batches = [feed.batch(0, index) for index in range(feed.batches(0))]
    said = [word for batch in batches for word in batch.targets[batch.mask].tolist()]
    assert said == [11, 12, 21, 31, 32, 33, 34, 35, 36, 37, 51]
    for batch in batches:
        assert torch.equal(batch.targets[batch.mask], batch.inputs[batch.mask] + 1)
        # Words see each other within a document only: one of a piece of one sentence.
        for row, owners, real in zip(batch.inputs, batch.documents, batch.mask, strict=True):
            for owner in owners[real].unique():
                assert len((row[owners == owner] // 10).unique()) == 1
            assert not set(owners[real].tolist()) & set(owners[~real].tolist())


def test_packed_in_order_a_row_holds_what_fits_whole():
    feed = PackedInOrder([[1, 2, 3], [4, 5], [6, 7, 8, 9, 1, 2]], batch=9, length=4)
    batch = feed.batch(0, 0)
    assert batch.inputs.tolist() == [[1, 2, 4, 0], [6, 7, 8, 9], [1, 0, 0, 0]]
    assert batch.targets.tolist() == [[2, 3, 5, 0], [7, 8, 9, 1], [2, 0, 0, 0]]
    assert batch.documents.tolist() == [[0, 0, 1, -1], [0, 0, 0, 0], [0, -1, -1, -1]]


def test_packed_in_order_refuses_a_text_without_words():
    with pytest.raises(ValueError, match="nothing to predict"):
        PackedInOrder([[1], []], batch=2, length=3)


@pytest.mark.parametrize("stream", [torch.zeros(0), torch.zeros(1)])
def test_a_text_without_words_is_refused(stream):
    with pytest.raises(ValueError, match="nothing to predict"):
        Columns(stream, 2, 3)
