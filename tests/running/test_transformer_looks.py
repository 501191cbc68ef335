"""A Transformer that translates: looks labelled, spoken and given alike; cached steps the whole."""

import pytest
from torch.testing import assert_close

import regard
from regard.training.train import train

RECIPE = """
[task]
kind = "translation"
[data]
generator = "numbers-de"
examples = 300
valid_examples = 20
test_examples = 10
[text]
kind = "word"
[model]
name = "transformer"
preset = "tiny"
layers = 2
model_size = 32
dropout = 0.0
[training]
feed = "sentences"
steps = 60
tokens = 512
rate = 5e-3
ema = 0.9
[decoding]
method = "beam"
beam = 3
longest = 12
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("transformer")
    (folder / "recipe.toml").write_text(RECIPE)
    return regard.load(train(str(folder / "recipe.toml"), folder / "run")[0])


def test_all_three_kinds_of_looks_have_the_words_of_their_sides(run):
    target = "zwei hundert ein und dreißig"
    looks = {look.path: look for look in run.look("two hundred thirty one", target)}
    source = ["two", "hundred", "thirty", "one"]
    said = [*target.split(), "</s>"]
    read = ["<s>", *target.split()]
    expected = {
        "encoder.layers.1.attention": ("self", source, source),
        "decoder.layers.1.attention": ("self", said, read),
        "decoder.layers.1.cross_attention": ("cross", said, source),
    }
    assert len(looks) == 6
    for path, (kind, queries, keys) in expected.items():
        look = looks[path]
        assert (look.kind, labels(look.queries), labels(look.keys)) == (kind, queries, keys)


def test_a_look_while_it_speaks_is_the_look_at_what_it_said(run):
    text = "two hundred thirty one"
    spoken = {look.path: look for look in run.look(text)}
    answer = run.translate(text)[0]
    given = {look.path: look for look in run.look(text, answer.hypotheses[0].text)}
    assert spoken.keys() == given.keys()
    for path, look in spoken.items():
        assert_close(look.weights, given[path].weights, atol=1e-5, rtol=1e-4)


def test_cached_steps_are_the_whole_and_a_batch_its_rows(run):
    for check in run.task.checks(run.model, run.resources, seed=3):
        assert_close(check.found, check.expected, atol=1e-5, rtol=1e-4)


def labels(side):
    return [label.text for label in side]
