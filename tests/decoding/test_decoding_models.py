"""Neural models: a batch says what each row says alone, and a cache changes nothing."""

import pytest
import torch

from regard.decoding import DecodingConfig, Hypothesis, decode, prepare_prompts

PROMPTS = [[5, 3, 8, 2], [7], [], [2, 6], [9, 9, 1, 4, 3, 10, 6]]
CONFIGS = {
    "greedy": DecodingConfig(longest=13),
    "sample": DecodingConfig(method="sample", longest=13, top_p=0.9, n_best=2),
    "beam": DecodingConfig(method="beam", longest=13, beam=3, n_best=3),
    "no repeats": DecodingConfig(method="beam", longest=13, beam=3, no_repeat_ngram=2, shortest=5),
}


def alike(one: list[Hypothesis], other: list[Hypothesis]) -> None:
    assert [x.ids for x in one] == [x.ids for x in other]
    assert [x.ended for x in one] == [x.ended for x in other]
    assert [x.score for x in one] == pytest.approx([x.score for x in other], abs=1e-5)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("kind", ["Recurrent", "Attentive"])
def test_a_batch_of_prompts_says_what_each_says_alone(kind, name, toys):
    model, config = getattr(toys, kind)(), CONFIGS[name]
    batch, first = prepare_prompts(PROMPTS, first=0)
    for which, row in enumerate(decode(model, batch, first, config, end=0)):
        alone, own = prepare_prompts([PROMPTS[which]], first=0)
        alike(row, decode(model, alone, own, config, end=0, numbers=[which])[0])


@pytest.mark.parametrize("name", CONFIGS)
def test_a_cache_changes_nothing(name, toys):
    model, config = toys.Attentive(), CONFIGS[name]
    batch, first = prepare_prompts(PROMPTS, first=0)
    cached = decode(model, batch, first, config, end=0)
    again = decode(toys.Forgetful(model), batch, first, config, end=0)
    for one, other in zip(cached, again, strict=True):
        alike(one, other)


@pytest.mark.parametrize("name", ["greedy", "beam"])
def test_a_batch_of_sources_says_what_each_says_alone(name, toys):
    model, config = toys.Attentive(), CONFIGS[name]
    batch = toys.sources([5, 3, 8], [7], [2, 6, 9, 9, 1])
    rows = decode(model, batch, torch.zeros(3, dtype=torch.long), config, end=1)
    assert len({row[0].ids for row in rows}) == 3
    for which, source in enumerate([[5, 3, 8], [7], [2, 6, 9, 9, 1]]):
        alike(rows[which], decode(model, toys.sources(source), torch.tensor([0]), config, end=1)[0])


def test_the_log_probability_is_that_of_the_words_read_at_once(toys):
    model = toys.Attentive()
    batch, first = prepare_prompts([[5, 3, 8]], first=0)
    for found in decode(model, batch, first, CONFIGS["beam"], end=0)[0]:
        ids = torch.tensor([5, 3, 8, *found.ids])
        logs = model.whole(ids[:-1]).log_softmax(-1)[2:].detach()
        expected = logs.gather(1, ids[3:].unsqueeze(1)).sum()
        assert found.log_probability == pytest.approx(expected.item(), abs=1e-4)
