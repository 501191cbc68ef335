"""The map of an answer, stitched from the rows it was made in, is that of the answer read whole."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from regard.attention import watch
from regard.decoding import (
    Ancestry,
    DecodingConfig,
    Hypothesis,
    decode,
    prepare_prompts,
    trace_attention,
)

CONFIGS = {
    "greedy": DecodingConfig(longest=7),
    "sample": DecodingConfig(method="sample", longest=7, n_best=3),
    "beam": DecodingConfig(method="beam", longest=7, beam=5, n_best=5),
}
SOURCES = [[5, 3, 8], [7], [2, 6, 9, 9, 1]]


def watched(model, batch, first, config, end):
    ancestry = Ancestry()
    with watch(model) as seen:
        rows = decode(model, batch, first, config, end=end, ancestry=ancestry)
    return rows, seen, ancestry


def read_whole(model, ids: list[int], source: list[int] | None = None):
    with watch(model) as seen, torch.no_grad():
        model.whole(torch.tensor(ids), None if source is None else torch.tensor(source))
    return {path: calls[0].weights[0] for path, calls in seen.items() if calls}


@pytest.mark.parametrize("method", CONFIGS)
def test_over_what_was_said_and_over_the_source(method, toys):
    model, batch = toys.Attentive(), toys.sources(*SOURCES)
    config = replace(CONFIGS[method], longest_factor=2.0)
    rows, seen, ancestry = watched(model, batch, torch.tensor([0, 0, 0]), config, end=1)
    lengths = {len(found.ids) for row in rows for found in row}
    assert len(lengths) > 1  # some have ended before others
    for source, row in zip(SOURCES, rows, strict=True):
        for found in row:
            steps = len(found.ids)
            whole = read_whole(model, [0, *found.ids[:-1]], source)
            own = trace_attention(seen["self_attention"], ancestry, found)  # (head, query, key)
            assert own.shape == (7, steps, steps)
            assert_close(own, whole["self_attention"], atol=1e-6, rtol=0)
            cross = trace_attention(seen["cross_attention"], ancestry, found)
            assert cross.shape == (1, steps, 5)  # the sources are padded to 5
            shown = cross[0, :, : len(source)]
            assert_close(shown, whole["cross_attention"], atol=1e-6, rtol=0)
            assert (cross[0, :, len(source) :] == 0).all()


@pytest.mark.parametrize("method", CONFIGS)
def test_a_prompt_stands_before_its_continuation(method, toys):
    model, prompts = toys.Attentive(), [[5, 3, 8, 2], [7, 4], [9]]
    batch, first = prepare_prompts(prompts, first=0)
    rows, seen, ancestry = watched(model, batch, first, CONFIGS[method], end=0)
    for prompt, row in zip(prompts, rows, strict=True):
        for found in row:
            whole = read_whole(model, [*prompt, *found.ids[:-1]])["self_attention"]
            own = trace_attention(seen["self_attention"], ancestry, found)
            padding = 4 - len(prompt)
            assert_close(own[:, padding:, padding:], whole, atol=1e-6, rtol=0)
            assert (own[:, :padding] == 0).all()
            assert (own[:, :, :padding] == 0).all()


def test_rows_lead_back_to_the_batch(toys):
    logits = torch.full((2, 3, 5, 5), -30.0)
    logits[0, :, :, 1] = 0.0  # the first sentence ends at once
    logits[1, 0, 0, 2], logits[1, 0, 0, 3] = -0.5, 0.0
    logits[1, 1, 2, 4] = logits[1, 1, 3, 4] = logits[1, 2, 4, 1] = 0.0
    config, ancestry = DecodingConfig(method="beam", beam=2, n_best=2, longest=3), Ancestry()
    batch, first = toys.sources([0], [1]), torch.tensor([0, 0])
    rows = decode(toys.Table(logits), batch, first, config, end=1, ancestry=ancestry)
    better, worse = (next(x for x in rows[1] if x.ids == ids) for ids in ((3, 4, 1), (2, 4, 1)))
    assert {len(x.ids) for x in rows[1]} == {3}
    assert ancestry.rows(better)[:2] == ancestry.rows(worse)[:2] == [1, 1]
    assert ancestry.rows(better)[2:] != ancestry.rows(worse)[2:]


@pytest.mark.parametrize("method", CONFIGS)
def test_an_answer_at_a_dead_end_has_its_own_rows(method, toys):
    logits = torch.full((2, 2, 3, 3), -torch.inf)
    logits[0, 0, 0, 1] = 0.0  # the first sentence ends at once, so the second moves up a row
    logits[1, 0, 0, 2] = 0.0  # and says one word, after which nothing can follow
    config, ancestry = replace(CONFIGS[method], n_best=1), Ancestry()
    batch, first = toys.sources([0], [1]), torch.tensor([0, 0])
    rows = decode(toys.Table(logits), batch, first, config, end=1, ancestry=ancestry)
    assert [row[0].ids for row in rows] == [(1,), (2,)]
    assert ancestry.rows(rows[0][0]) == [0, 0]
    assert ancestry.rows(rows[1][0]) == [1, 1]


def test_an_attention_that_looks_only_once_cannot_be_traced(toys):
    model = toys.Attentive()
    rows, seen, ancestry = watched(
        model, toys.sources([5]), torch.tensor([0]), DecodingConfig(longest=3), end=None
    )
    with pytest.raises(ValueError, match=r"calls \(1\) are fewer than the 3 steps"):
        trace_attention(seen["self_attention"][:1], ancestry, rows[0][0])


def test_calls_of_two_decodings_are_not_mistaken_for_one(toys):
    model, config, ancestry = toys.Attentive(), DecodingConfig(longest=3), Ancestry()
    with watch(model) as seen:
        rows = decode(model, toys.sources([5]), torch.tensor([0]), config, ancestry=ancestry)
        decode(model, toys.sources([5], [7]), torch.tensor([0, 0]), config)
    with pytest.raises(ValueError, match="one has 2 rows where step 0 has 1"):
        trace_attention(seen["self_attention"], ancestry, rows[0][0])


def test_an_answer_of_another_decoding_is_refused(toys):
    ancestry = Ancestry([torch.tensor([0, 1])])
    with pytest.raises(ValueError, match=r"hypothesis \(2 words\) is not of this ancestry"):
        ancestry.rows(Hypothesis((3, 4), 0.0, 0.0, True))
    with pytest.raises(ValueError, match=r"hypothesis \(row 5\) is not of this ancestry"):
        ancestry.rows(Hypothesis((3,), 0.0, 0.0, True, row=5))
