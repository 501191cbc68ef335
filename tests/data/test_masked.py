"""Pairs of texts with hidden words: who stands beside whom, and what is to be guessed."""

import random

import pytest
import torch

from regard.data.masked import Hiding, Marks, MaskedPairs

MARKS = Marks(pad=0, first=1, separator=2, hidden=3)
UNKNOWN = 4  # a special that stands for a word of the text
WORDS = torch.arange(5, 2000)


def documents(count=23, sentences=17, length=7):
    """Every sentence of its own words: document, place, and a running number."""
    made, word = [], 5
    for _ in range(count):
        document = []
        for _ in range(sentences):
            document.append([5 + (word + k) % 1990 for k in range(length)])
            word += length
        made.append(document)
    return made


def feed(texts=None, **settings):
    settings = {"length": 40, "tokens": 400, "seed": 3, **settings}
    return MaskedPairs(texts or documents(), MARKS, WORDS, **settings)


def batches(source, epoch=0):
    return [source.batch(epoch, index) for index in range(source.batches(epoch))]


def sides(batch, row):
    """The words of the first text and of the second, as they were before any was hidden."""
    ids = batch.targets[row][batch.mask[row]].tolist()
    cut = ids.index(2)
    assert ids[0] == 1 and ids[-1] == 2
    return ids[1:cut], ids[cut + 1 : -1]


def test_a_row_is_two_texts_between_marks_and_says_which_is_which():
    for batch in batches(feed()):
        for row in range(len(batch)):
            first, second = sides(batch, row)
            assert first and second and len(first) + len(second) + 3 <= 40
            expected = [0] * (len(first) + 2) + [1] * (len(second) + 1)
            real = int(batch.mask[row].sum())
            assert batch.segments[row, :real].tolist() == expected
            assert batch.segments[row, real:].sum() == 0


def test_half_of_the_second_texts_follow_and_the_others_come_from_another_document():
    texts = [[[d * 80 + s + 5] for s in range(60)] for d in range(24)]  # a word a sentence
    where = {s[0]: (d, i) for d, sentences in enumerate(texts) for i, s in enumerate(sentences)}
    labels = []
    for epoch in range(3):
        for batch in batches(feed(texts, length=13), epoch):
            for row in range(len(batch)):
                first, second = sides(batch, row)
                (document, place), (other, start) = where[first[-1]], where[second[0]]
                follows = other == document and start == place + 1
                assert batch.unrelated[row] == (not follows)
                assert follows or other != document
                assert batch.pair_mask[row]
                labels.append(int(batch.unrelated[row]))
    assert len(labels) > 300
    assert abs(sum(labels) / len(labels) - 0.5) < 0.01


def test_a_second_text_tells_nothing_by_itself():
    """What follows somebody stands elsewhere once at the most: all seconds are all there were."""
    source = feed()
    pairs = list(source._pairs(0))
    rows, _ = source._plan(0)
    assert sorted(row[1] for row in rows) == sorted(pair.second for pair in pairs)
    assert [row[0] for row in rows] == [pair.first for pair in pairs]


def test_how_long_the_texts_are_does_not_tell_whether_they_belong_together():
    """A first text that ended because its next sentence was long would give its second away."""
    chance = random.Random(1)
    texts = [[[7] * chance.choice([4, 28]) for _ in range(200)] for _ in range(30)]
    source = feed(texts, length=63)
    rows = [row for epoch in range(4) for row in source._plan(epoch)[0]]
    rows.sort(key=lambda row: len(row[0]) + len(row[1]))
    shortest = [unrelated for _, _, unrelated in rows[: len(rows) // 10]]
    assert len(shortest) > 300
    assert abs(sum(shortest) / len(shortest) - 0.5) < 0.1


def test_with_one_document_the_other_text_is_from_another_place():
    for batch in batches(feed(documents(1, 40), length=17)):
        for row in range(len(batch)):
            first, second = sides(batch, row)
            assert batch.unrelated[row] == (second[0] != first[-1] + 1)


def test_about_fifteen_in_a_hundred_words_are_asked_for_and_never_a_mark():
    source = feed(documents(40, 40), length=60, tokens=4000)
    asked = hidden = kept = others = words = 0
    for epoch in range(2):
        for batch in batches(source, epoch):
            real = batch.mask & (batch.targets >= 5)
            assert not (batch.loss_mask & ~real).any()
            assert torch.equal(batch.ids[~batch.loss_mask], batch.targets[~batch.loss_mask])
            seen, was = batch.ids[batch.loss_mask], batch.targets[batch.loss_mask]
            words += int(real.sum())
            asked += len(seen)
            hidden += int((seen == 3).sum())
            kept += int((seen == was).sum())
            others += int(((seen != 3) & (seen != was)).sum())
            assert not ((seen < 5) & (seen != 3)).any()
    assert words > 15_000
    assert abs(asked / words - 0.15) < 0.005
    assert abs(hidden / asked - 0.8) < 4 * (0.16 / asked) ** 0.5
    assert abs(others / asked - 0.1) < 4 * (0.09 / asked) ** 0.5
    assert abs(kept / asked - 0.1) < 4 * (0.09 / asked) ** 0.5


def test_every_row_has_something_to_guess_however_short_and_specials_never():
    texts = [[[5], [UNKNOWN, 6]], [[7], [8]]]
    for batch in batches(feed(texts)):
        assert batch.loss_mask.any(dim=1).all()
        assert not (batch.loss_mask & (batch.targets == UNKNOWN)).any()


def test_words_are_hidden_anew_every_epoch_and_the_same_way_every_time():
    source, again = feed(), feed()
    for index in (0, 3):
        first, same = source.batch(1, index), again.batch(1, index)
        for name in ("ids", "mask", "segments", "targets", "loss_mask", "unrelated"):
            assert torch.equal(getattr(first, name), getattr(same, name))
    texts = {tuple(sides(b, r)[0]) for b in batches(source, 0) for r in range(len(b))}
    others = {tuple(sides(b, r)[0]) for b in batches(source, 1) for r in range(len(b))}
    assert texts != others
    assert not torch.equal(feed(seed=4).batch(0, 0).ids, feed(seed=5).batch(0, 0).ids)


def test_without_a_seed_every_feed_is_the_same():
    one, two = feed(seed=None), feed(seed=None)
    assert all(torch.equal(a.ids, b.ids) for a, b in zip(batches(one), batches(two), strict=True))


def test_rows_may_be_one_text_of_which_no_second_is_asked():
    for batch in batches(feed(paired=False)):
        assert not batch.pair_mask.any() and batch.segments.sum() == 0
        for row in range(len(batch)):
            ids = batch.targets[row][batch.mask[row]].tolist()
            assert ids.count(2) == 1 and ids[-1] == 2 and len(ids) <= 40


def test_a_sentence_that_is_too_long_is_cut_to_its_half_of_the_room():
    for batch in batches(feed([[list(range(5, 105))] * 4], length=21)):
        assert batch.ids.shape[1] == 21


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"share": 1.5}, r"share \(1.5\) must be from 0 to 1"),
        ({"hidden": 0.95}, r"hidden \(0.95\) and another \(0.1\) must be at most 1 together"),
    ],
)
def test_shares_that_cannot_be_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Hiding(**settings)


def test_what_leaves_no_pair_is_refused():
    with pytest.raises(ValueError, match=r"length \(4\) must be 5 or more"):
        feed(length=4)
    with pytest.raises(ValueError, match="every document needs two sentences"):
        feed([[[5, 6]], [[7]]]).batches(0)
