"""A look at an answer shows the weights that were used while it was decoded."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.attention import watch
from regard.data.batches import Words
from regard.tasks.answers import Candidate

NUMBERS = {
    "data.examples": 200,
    "data.valid_examples": 20,
    "data.test_examples": 10,
    "training.steps": 30,
    "training.evaluate_every": 30,
    "model.hidden_size": 16,
    "model.attention_size": 8,
}
ATTENTIVE = """
[model]
name = "attentive-rnn"
hidden_size = 10
window = 3
[training]
feed = "columns"
steps = 2
batch = 3
length = 5
"""


class Recorded:
    """A model that writes down, for each prefix it goes on from, the weights of that step."""

    def __init__(self, model, path):
        self.model, self.part, self.weights = model, model.get_submodule(path), {}

    def start(self, batch):
        return RecordedState(self.model.start(batch), [()] * len(batch))

    def step(self, ids, state):
        with watch(self.part) as seen:
            logits, inner = self.model.step(ids, state.inner)
        prefixes = [(*before, int(word)) for before, word in zip(state.prefixes, ids, strict=True)]
        for row, prefix in enumerate(prefixes):
            self.weights[prefix] = seen["attention"][0].weights[row].detach()
        return logits, RecordedState(inner, prefixes)


class RecordedState:
    def __init__(self, inner, prefixes):
        self.inner, self.prefixes = inner, prefixes

    def pick(self, rows):
        return RecordedState(self.inner.pick(rows), [self.prefixes[row] for row in rows.tolist()])


def recorded_rows(run, path, answer_of):
    """What `answer_of` says, and the weights of each of its steps by the words before it."""
    recorded = Recorded(run.model, path)
    run.model, model = recorded, run.model
    try:
        answer = answer_of(run)
    finally:
        run.model = model
    return answer, recorded.weights


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    run = regard.train("numbers-de", tmp_path_factory.mktemp("run") / "run", NUMBERS)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():  # so that it is sure of nothing, and hypotheses overtake each other
        for weight in run.model.parameters():
            weight.normal_(std=0.3, generator=generator)
    return run


@pytest.mark.parametrize("text", ["two hundred and forty-one thousand and five", "ninety-six"])
@pytest.mark.parametrize(
    "settings",
    [{"beam": 5}, {"beam": 5, "n_best": 3}, {"temperature": 1.5, "seed": 3}, {"method": "greedy"}],
)
def test_a_translation_s_look_is_made_of_the_weights_seen_while_decoding(
    translator, settings, text
):
    settings = {**settings, "longest": 12}
    (answer,), weights = recorded_rows(
        translator, "decoder.attention", lambda run: run.translate([text], **settings)
    )
    (look,) = translator.look_at(answer)
    words = translator.tokenizer
    said = [label.text for label in look.queries]
    ids = [words.id_of(token) for token in said]
    prefixes = [(words.id_of_role("start"), *ids[:at]) for at in range(len(ids))]
    expected = torch.cat([weights[prefix] for prefix in prefixes])
    assert torch.equal(look.weights[0], expected)
    assert (look.kind, look.steps) == ("cross", tuple(range(len(said))))
    assert [key.text for key in look.keys] == translator.task.segment(text).split()
    assert translator.task.join(words.decode(ids), "") == answer.output


def test_a_look_without_a_target_is_that_of_the_answer(translator):
    text = "forty-two"
    (answer,) = translator.translate([text])
    one, other = translator.look(text)[0], translator.look_at(answer)[0]
    assert one == other
    assert torch.equal(one.weights, other.weights)


def test_a_sample_is_looked_at_with_the_draws_it_was_made_with(translator):
    texts = ["forty-two", "seven", "one thousand and six"]
    answers = translator.translate(texts, temperature=2.0, seed=5, longest=9)
    for answer in answers:
        (look,) = translator.look_at(answer)
        said = [label.text for label in look.queries if label.text != "</s>"]
        assert translator.task.join(" ".join(said), "") == answer.output


def test_an_answer_that_comes_out_otherwise_is_refused(translator):
    (answer,) = translator.translate(["seven"])
    changed = replace(answer, hypotheses=(Candidate("otherwise", 0.0),))
    with pytest.raises(ValueError, match=r"output \('otherwise'\) came out as .* decoded again"):
        translator.look_at(changed)


def whole_maps(run, ids):
    with watch(run.model) as seen, torch.no_grad():
        run.model(Words.of_ids(torch.tensor([ids])))
    return {path: calls[0] for path, calls in seen.items()}


@pytest.mark.parametrize("prompt", ["the cat", "the", ""])
@pytest.mark.parametrize("settings", [{"temperature": 1.3, "seed": 2}, {"beam": 5}])
def test_generated_text_is_one_map_with_the_future_hatched(written, tmp_path, prompt, settings):
    extra = {"training.steps": 1, "model.longest": 24}
    run = regard.train(written("transformer"), tmp_path / "run", extra)
    (answer,) = run.generate([prompt], longest=7, shortest=4, **settings)
    looks = run.look_at(answer)
    assert len(looks) == 2
    words = run.tokenizer
    labels = [label.text for label in looks[0].queries]
    ids = [words.id_of(label) for label in labels]
    for path, whole in whole_maps(run, ids).items():
        assert [label.text for label in looks[path].keys] == labels
        assert_close(looks[path].weights, whole.weights[0], atol=1e-6, rtol=0)
        causal = torch.ones(len(ids), len(ids), dtype=torch.bool).tril()
        assert torch.equal(looks[path].mask.expand(1, -1, -1)[0], causal)
    read = ids if prompt else ids[1:]
    assert answer.text.startswith(words.decode(read))


def test_text_beyond_the_positions_is_looked_at_window_by_window(written, tmp_path):
    run = regard.train(written("transformer"), tmp_path / "run", {"training.steps": 1})
    (answer,) = run.generate(["the cat"], longest=14, shortest=14, temperature=1.0)
    looks = run.look_at(answer)
    assert len(looks) > 2  # two layers, and more than one window of eight positions
    said = [label.text for look in looks.under("layers.0") for label in look.queries]
    assert set(answer.text.split()) <= set(said) | {answer.text.split()[-1]}


@pytest.fixture
def attentive(written, tmp_path):
    path = written("lstm")
    path.write_text(path.read_text().split("[model]")[0] + ATTENTIVE)
    return regard.train(path, tmp_path / "run")


def test_a_text_that_is_read_is_labelled_word_by_word(written, attentive, tmp_path):
    transformer = regard.train(written("transformer"), tmp_path / "other", {"training.steps": 1})
    text = "the old cat  sees"
    for run, attentions in ((attentive, 1), (transformer, 2)):
        looks = run.look(text)
        assert len(looks) == attentions
        for look in looks:
            assert (look.kind, look.queries, look.query_text) == ("self", look.keys, text)
            assert [text[key.start : key.end] for key in look.keys] == text.split()


@pytest.mark.parametrize("prompt", ["the cat sees a dog", ""])
def test_a_model_that_reads_its_prompt_without_looking_looks_from_its_last_word_on(
    attentive, prompt
):
    run = attentive
    (answer,) = run.generate([prompt], longest=5, shortest=5, temperature=1.0)
    (look,) = run.look_at(answer)
    words = [label.text for label in look.keys]
    assert len(look.queries) == 5
    assert [label.text for label in look.queries] == words[-5:]
    whole = whole_maps(run, [run.tokenizer.id_of(word) for word in words])["attention"]
    assert_close(look.weights, whole.weights[:, -5:], atol=1e-6, rtol=0)
    assert torch.equal(look.mask[0], whole.visible()[0, -5:])
