"""Beam search against all there is to find, and against a plain search over lists."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.decoding import DecodingConfig, beam, greedy

PENALTIES = st.sampled_from([("none", 0.0), ("gnmt", 0.6), ("gnmt", 2.0), ("average", 0.0)])
QUICK = settings(max_examples=40, deadline=None)


def configured(penalty: tuple[str, float], **rest) -> DecodingConfig:
    return DecodingConfig(method="beam", length_penalty=penalty[0], length_alpha=penalty[1], **rest)


def same(found, expected) -> None:
    """The same scores; and the same words, unless two are as good as each other."""
    assert [one.score for one in found] == pytest.approx([one.score for one in expected], abs=1e-5)
    assert [one.ids for one in found] == [one.ids for one in expected]
    assert [one.ended for one in found] == [one.ended for one in expected]


@QUICK
@given(seed=st.integers(0, 9999), vocabulary=st.integers(2, 3), longest=st.integers(1, 5),
       n_best=st.integers(1, 7), penalty=PENALTIES)  # fmt: skip
def test_a_beam_wide_enough_for_everything_finds_the_best(
    table, toys, seed, vocabulary, longest, n_best, penalty
):
    model = table(vocabulary, seed=seed)
    config = configured(penalty, beam=400, n_best=n_best, longest=longest)
    everything = toys.every_answer(model.logits[0], config, end=1)
    [found] = beam(model, toys.sources([0]), torch.tensor([0]), config, end=1)
    same(found, everything[:n_best])


@QUICK
@given(seed=st.integers(0, 9999), vocabulary=st.integers(2, 7), width=st.integers(1, 5),
       longest=st.integers(1, 7), penalty=PENALTIES, scale=st.sampled_from([0.1, 1.0, 4.0]),
       data=st.data())  # fmt: skip
def test_it_finds_what_a_plain_search_without_early_stopping_finds(
    table, toys, seed, vocabulary, width, longest, penalty, scale, data
):
    n_best = data.draw(st.integers(1, width))
    model = table(vocabulary, steps=7, tables=3, seed=seed, scale=scale)
    config = configured(penalty, beam=width, n_best=n_best, longest=longest)
    batch, first = toys.sources([0], [1], [2]), torch.zeros(3, dtype=torch.long)
    for which, found in enumerate(beam(model, batch, first, config, end=1)):
        same(found, toys.plain_beam(model.logits[which], config, end=1))


@QUICK
@given(seed=st.integers(0, 9999), vocabulary=st.integers(1, 7), longest=st.integers(1, 7),
       penalty=PENALTIES, barred=st.booleans())  # fmt: skip
def test_a_beam_of_one_is_greedy(table, toys, seed, vocabulary, longest, penalty, barred):
    model = table(vocabulary, tables=3, seed=seed)
    model.logits = model.logits.round()  # so that there are ties
    if barred:
        model.logits[model.logits < 0] = -torch.inf  # so that there are dead ends
    config = DecodingConfig(
        beam=1, longest=longest, length_penalty=penalty[0], length_alpha=penalty[1]
    )
    batch, first = toys.sources([0], [1], [2]), torch.zeros(3, dtype=torch.long)
    assert beam(model, batch, first, config, end=0) == greedy(model, batch, first, config, end=0)


@QUICK
@given(seed=st.integers(0, 9999), vocabulary=st.integers(2, 4), penalty=PENALTIES)
def test_a_full_beam_is_never_worse_than_greedy(table, toys, seed, vocabulary, penalty):
    model = table(vocabulary, seed=seed)
    config = configured(penalty, beam=400, longest=4)
    batch, first = toys.sources([0]), torch.tensor([0])
    [[best]], [[greedily]] = (way(model, batch, first, config, end=1) for way in (beam, greedy))
    assert best.score >= greedily.score


@QUICK
@given(seed=st.integers(0, 9999), width=st.integers(1, 11), shortest=st.integers(0, 4),
       longest=st.integers(4, 7), ngram=st.sampled_from([None, 1, 2, 3]),
       penalty=PENALTIES)  # fmt: skip
def test_n_best_are_distinct_sorted_and_keep_to_every_rule(
    table, toys, seed, width, shortest, longest, ngram, penalty
):
    model = table(3, tables=2, seed=seed)
    config = configured(
        penalty, beam=width, n_best=width, longest=longest, shortest=shortest, no_repeat_ngram=ngram
    )
    batch, first = toys.sources([0], [1]), torch.tensor([0, 2])
    for found in beam(model, batch, first, config, end=1):
        assert 1 <= len(found) <= width
        assert len({one.ids for one in found}) == len(found)
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        for one in found:
            assert len(one.ids) <= longest
            assert one.ended == (1 in one.ids)
            assert 1 not in one.ids[:-1]
            assert not one.ended or len(one.ids) > shortest
            if ngram is not None:
                grams = [one.ids[i : i + ngram] for i in range(len(one.ids) - ngram + 1)]
                assert len(set(grams)) == len(grams)


def test_a_vocabulary_smaller_than_the_beam_gives_what_there_is(toys):
    model = toys.Table(torch.zeros(1, 1, 2, 2))
    config = DecodingConfig(method="beam", beam=7, n_best=7, longest=2)
    [found] = beam(model, toys.sources([0]), torch.tensor([0]), config, end=1)
    assert {one.ids for one in found} == {(1,), (0, 0), (0, 1)}


def test_the_garden_path_is_left_by_a_beam_of_two(toys):
    # 2 is the better first word, yet everything after it is unlikely; 0 leads to a sure end.
    p = torch.tensor([[[0.4, 0.01, 0.59], [0, 0, 0], [0, 0, 0]],
                      [[0.05, 0.9, 0.05], [0, 0, 0], [0.34, 0.33, 0.33]]])  # fmt: skip
    model = toys.Table(p.log().unsqueeze(0))
    config = DecodingConfig(beam=2, longest=2, length_penalty="none")
    batch, first = toys.sources([0]), torch.tensor([0])
    [[best]] = beam(model, batch, first, config, end=1)
    [[greedily]] = greedy(model, batch, first, config, end=1)
    assert best.ids == (0, 1)
    assert best.log_probability == pytest.approx(-1.0216512)  # log(0.4 · 0.9)
    assert greedily.ids == (2, 0)


def test_a_sentence_stops_as_soon_as_nothing_can_win(toys):
    # The end has 0.9 at once; anything else has log 0.1 = -2.3 and can become, at length 100,
    # -2.3 / (105 / 6)^0.6 = -0.41 at best: worse than log 0.9 = -0.105.
    logits = torch.tensor([0.05, 0.9, 0.05]).log().expand(1, 1, 3, 3)
    model = toys.Table(logits)
    config = DecodingConfig(method="beam", beam=3, longest=100)
    beam(model, toys.sources([0]), torch.tensor([0]), config, end=1)
    assert model.rows == [1]


def test_a_sentence_goes_on_while_something_could_still_win(toys):
    # Ends are rare at first, but what follows is certain: at length 7 the average wins.
    logits = torch.full((1, 7, 3, 3), -30.0)
    logits[0, 0, 0] = torch.tensor([-1.2, -0.4, -30.0])
    logits[0, 1:6, :, 2] = logits[0, 6:, :, 1] = 0.0
    model = toys.Table(logits)
    config = DecodingConfig(method="beam", beam=2, longest=11, length_penalty="average")
    [[best]] = beam(model, toys.sources([0]), torch.tensor([0]), config, end=1)
    assert best.ids == (0, 2, 2, 2, 2, 2, 1)


def test_rows_leave_when_their_hypotheses_end_and_their_sentences_are_done(toys):
    logits = torch.full((2, 5, 3, 3), -9.0)
    logits[0, :, :, 1] = 0.0  # the first sentence ends at once
    logits[1, :, :, 0] = 0.0
    logits[1, :, :, 2] = -0.1  # the second has two ways to go on
    model = toys.Table(logits)
    config = DecodingConfig(beam=2, longest=5)
    rows = beam(model, toys.sources([0], [1]), torch.tensor([0, 0]), config, end=1)
    assert rows[0][0].ids == (1,)
    assert model.rows == [2, 2, 2, 2, 2]  # two sentences, then two hypotheses of the second
    assert model.picked[0] == [1, 1]


def test_no_state_is_picked_while_each_row_goes_on_with_one_word(toys):
    p = torch.full((1, 3, 5, 5), 0.01)
    p[0, 0, 0, 2], p[0, 0, 0, 3] = 0.55, 0.42
    for step, (two, three) in enumerate([(0.5, 0.9), (0.9, 0.5)], start=1):
        p[0, step, 2], p[0, step, 2, 2] = (1 - two) / 4, two  # 3 3 overtakes 2 2,
        p[0, step, 3], p[0, step, 3, 3] = (1 - three) / 4, three  # 2 2 2 overtakes 3 3 3
    model = toys.Table(p.log())
    config = DecodingConfig(method="beam", beam=2, n_best=2, longest=3)
    [found] = beam(model, toys.sources([0]), torch.tensor([0]), config, end=1)
    assert [one.ids for one in found] == [(2, 2, 2), (3, 3, 3)]
    assert model.picked == [[0, 0]]  # one row becomes two, and that is all


def test_a_dead_end_is_an_answer_that_did_not_end(toys):
    logits = torch.full((1, 3, 3, 3), -torch.inf)
    logits[0, 0, 0] = torch.tensor([0.6, 0.0, 0.4]).log()
    logits[0, 1, 2] = torch.tensor([0.0, 1.0, 0.0]).log()  # after 0 nothing can follow
    config = DecodingConfig(method="beam", beam=3, n_best=3, longest=3, length_penalty="none")
    [found] = beam(toys.Table(logits), toys.sources([0]), torch.tensor([0]), config, end=1)
    assert [(one.ids, one.ended) for one in found] == [((0,), False), ((2, 1), True)]


def test_an_empty_batch_has_no_answers(table, toys):
    batch = toys.sources([0]).pick(torch.empty(0, dtype=torch.long))
    assert beam(table(3), batch, torch.empty(0, dtype=torch.long), DecodingConfig()) == []
