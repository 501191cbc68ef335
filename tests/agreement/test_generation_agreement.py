"""Greedy, beam and sampling beside `generate` of transformers, on the same weights."""

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.decoding import DecodingConfig, decode, prepare_prompts
from regard.decoding.sampling import filter_words

transformers = pytest.importorskip("transformers")

END, NEW, VOCABULARY = 0, 14, 13
PROMPTS = [[5, 3, 8, 1], [2, 9], [11, 12, 1, 4, 1, 6]]


@pytest.fixture
def pair(gpt2):
    """Their model and ours, over few words, so that the end comes often, and not always."""

    def make(seed):
        model, folder = gpt2(vocab_size=VOCABULARY)
        torch.manual_seed(seed)
        with torch.no_grad():
            for weight in model.parameters():
                if weight.dim() > 1:
                    weight.normal_(std=0.5)
            model.transformer.wpe.weight.normal_()
            model.transformer.wte.weight[END] *= 2
        model.save_pretrained(folder)
        return model, regard.load(folder).model

    return make


def generate(model, prompts, **settings):
    """What transformers generates: for each prompt its answers, without padding."""
    longest = max(map(len, prompts))
    ids = torch.tensor([[7] * (longest - len(p)) + p for p in prompts])
    mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts])
    with torch.no_grad():
        found = model.generate(
            ids,
            attention_mask=mask,
            max_new_tokens=NEW,
            pad_token_id=END,
            output_scores=True,
            return_dict_in_generate=True,
            **settings,
        )
    answers = [trim(row[longest:].tolist()) for row in found.sequences]
    return answers, found


def trim(ids):
    """Up to the end, and with it."""
    return ids[: ids.index(END) + 1] if END in ids else ids


def ours(model, prompts, **settings):
    batch, first = prepare_prompts(prompts, END)
    config = DecodingConfig(longest=NEW, **settings)
    return decode(model, batch, first, config, end=END)


@pytest.mark.parametrize("seed", range(5))
def test_greedy_says_the_same_words(pair, seed):
    theirs, mine = pair(seed)
    expected, _ = generate(theirs, PROMPTS, do_sample=False)
    found = ours(mine, PROMPTS, method="greedy")
    assert [list(best.ids) for (best,) in found] == expected


BEAMS = {
    "as it is": ({}, {"length_penalty": "average", "stopping": "hf"}),
    "early": ({"early_stopping": True}, {"length_penalty": "average", "stopping": "hf-early"}),
    "never": ({"early_stopping": "never"}, {"length_penalty": "average", "stopping": "hf-never"}),
    "no penalty": ({"length_penalty": 0.0}, {"length_penalty": "none", "stopping": "hf"}),
    "strong penalty": (
        {"length_penalty": 2.5},
        {"length_penalty": "power", "length_alpha": 2.5, "stopping": "hf"},
    ),
    "strong penalty, never": (
        {"length_penalty": 2.5, "early_stopping": "never"},
        {"length_penalty": "power", "length_alpha": 2.5, "stopping": "hf-never"},
    ),
    "at least so many": (
        {"min_new_tokens": 5},
        {"length_penalty": "average", "stopping": "hf", "shortest": 5},
    ),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", BEAMS)
def test_a_beam_of_4_says_the_same_words_with_the_same_scores(pair, name, seed):
    theirs, mine = pair(seed)
    there, here = BEAMS[name]
    expected, record = generate(
        theirs, PROMPTS, num_beams=4, num_return_sequences=4, do_sample=False, **there
    )
    found = [
        each for row in ours(mine, PROMPTS, method="beam", beam=4, n_best=4, **here) for each in row
    ]
    assert [list(each.ids) for each in found] == expected
    scores = torch.tensor([each.score for each in found])
    assert_close(scores, record.sequences_scores, atol=1e-5, rtol=1e-5)


def test_these_searches_do_end_and_each_policy_finds_others(pair):
    """Or the tests above would show nothing."""
    lengths, different = set(), dict.fromkeys(("exact", "hf-early", "hf-never"), 0)
    for seed in range(5):
        _, mine = pair(seed)

        def search(stopping, mine=mine):
            beam = {"method": "beam", "beam": 4, "n_best": 4, "length_penalty": "average"}
            return [
                each.ids for row in ours(mine, PROMPTS, **beam, stopping=stopping) for each in row
            ]

        answers = search("hf")
        lengths |= set(map(len, answers))
        for stopping in different:
            different[stopping] += answers != search(stopping)
    assert len(lengths) > 8
    assert all(different.values())


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [(1, None, 1.0), (0.7, None, 1.0), (1.3, 5, 1.0), (1, None, 0.6), (0.8, 9, 0.7), (2, 3, 0.9)],
)
def test_words_are_drawn_from_the_same_filtered_distribution(pair, temperature, top_k, top_p):
    theirs, mine = pair(1)
    torch.manual_seed(0)
    _, record = generate(
        theirs,
        PROMPTS[:1],
        do_sample=True,
        temperature=float(temperature),
        top_k=top_k or 0,
        top_p=top_p,
    )
    prompt = PROMPTS[0]
    config = DecodingConfig(method="sample", temperature=temperature, top_k=top_k, top_p=top_p)
    said = trim(record.sequences[0, len(prompt) :].tolist())
    for step, scores in enumerate(record.scores[: len(said)]):
        batch, first = prepare_prompts([prompt + said[:step]], END)
        logits, _ = mine.step(first, mine.start(batch))
        weights, words = filter_words(logits.log_softmax(dim=-1), config)
        words = torch.arange(VOCABULARY).unsqueeze(0) if words is None else words
        found = torch.zeros(1, VOCABULARY).scatter(1, words, weights / weights.sum())
        assert_close(found, scores.softmax(dim=-1), atol=1e-5, rtol=0)
