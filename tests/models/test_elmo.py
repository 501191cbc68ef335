"""ELMo: published sizes, exact shortcuts, two directions that share what they should, a mix."""

import pytest
import torch
from torch.testing import assert_close

from regard.data.batches import Spellings
from regard.data.spelled import pad_spellings
from regard.models.catalog import build
from regard.models.elmo import ELMoConfig, ScalarMix
from regard.models.outline import outline
from regard.text.spelling import spell

TASK = "bidirectional-language-model"
TINY = {
    "character_size": 3,
    "filters": ((1, 2), (3, 5)),
    "highway_layers": 1,
    "projection_size": 5,
    "hidden_size": 7,
}


@pytest.fixture
def model():
    torch.manual_seed(5)
    return build("elmo", TASK, vocabulary_size=11, **TINY).eval()


def sentence(text: str):
    return [spell(word) for word in text.split()]


@pytest.mark.parametrize(("preset", "millions"), [("small", 13.6), ("medium", 28.0), (None, 93.6)])
def test_published_models_have_the_published_number_of_parameters(preset, millions):
    model = outline(lambda: build("elmo", TASK, preset=preset))
    assert round(sum(p.numel() for p in model.parameters()) / 1e6, 1) == millions


def test_the_words_own_layer_is_their_vector_twice(model):
    layers, _ = model.reader(*pad_spellings([sentence("the cat sat")]))
    own, again = layers[0].chunk(2, dim=-1)
    assert [layer.shape for layer in layers] == [(1, 5, 10)] * 3
    assert_close(own, again)


@torch.no_grad()
def test_a_short_word_reads_the_same_beside_a_long_one_and_as_all_fifty_characters(model):
    short, long = spell("cat"), spell("incomprehensibilities")
    alone = model.reader.words(torch.tensor([[short]]))[0, 0]
    assert_close(model.reader.words(torch.tensor([[long, short]]))[0, 1], alone)
    words = model.reader.words
    vectors = words.embedding(torch.tensor([short])).mT  # (1, size, 50): nothing left out
    hidden = torch.cat([each(vectors).relu().amax(dim=-1) for each in words.filters], dim=-1)
    for highway in words.highways:
        gate = highway.gate(hidden).sigmoid()
        hidden = gate * highway.transform(hidden).relu() + (1 - gate) * hidden
    assert_close(words.projection(hidden)[0], alone)


@torch.no_grad()
def test_forward_sees_nothing_behind_a_word_and_backward_nothing_before_it(model):
    one, _ = model.reader(*pad_spellings([sentence("the cat sat there")]))
    other, _ = model.reader(*pad_spellings([sentence("the cat ran there")]))
    changed = (one[-1] - other[-1]).abs()[0] > 1e-7  # (position, 2 · projection)
    ahead, back = (half.any(dim=-1).tolist() for half in changed.chunk(2, dim=-1))
    assert ahead == [False] * 3 + [True] * 3  # <S> the cat | sat there </S>
    assert back == [True] * 4 + [False] * 2


@torch.no_grad()
def test_the_second_layer_adds_what_it_read(model):
    layers, _ = model.reader(*pad_spellings([sentence("the cat sat")]))
    below = torch.stack(layers[1].chunk(2, dim=-1))
    outputs, _ = model.reader.layers[1](below)
    assert_close(layers[2], torch.cat([*(outputs + below)], dim=-1))
    model.reader.residual = False
    plain, _ = model.reader(*pad_spellings([sentence("the cat sat")]))
    assert_close(plain[2], torch.cat([*outputs], dim=-1))


def test_both_directions_share_the_words_and_the_softmax_and_have_cells_of_their_own(model):
    characters, mask = pad_spellings([sentence("the cat sat")])
    ahead, back = model(Spellings(characters, mask.long(), mask))
    for logits, silent in ((ahead, 1), (back, 0)):
        model.zero_grad()
        logits.square().sum().backward(retain_graph=True)
        for layer in model.reader.layers:
            assert not layer.weight_hh.grad[silent].any()
            assert layer.weight_hh.grad[1 - silent].any()
        assert model.output.weight.grad.any()
        assert model.reader.words.projection.weight.grad.any()


def test_a_model_without_a_vocabulary_reads_and_says_that_it_guesses_nothing():
    model = build("elmo", TASK, **TINY)
    assert model.output is None
    with pytest.raises(ValueError, match=r"vocabulary_size \(None\)"):
        model(None)


def test_a_mix_is_gamma_times_the_weighted_sum():
    mix = ScalarMix(3)
    layers = [torch.randn(2, 5, 7) for _ in range(3)]
    mask = torch.ones(2, 5).bool()
    assert_close(mix(layers, mask), sum(layers) / 3)  # a new one has all alike
    with torch.no_grad():
        mix.scores.copy_(torch.tensor([1.0, 2.0, 4.0]).log())
        mix.gamma.fill_(3.0)
    assert_close(mix(layers, mask), 3 * (layers[0] + 2 * layers[1] + 4 * layers[2]) / 7)


def test_a_mix_that_normalises_leaves_padding_out():
    mix = ScalarMix(1, norm=True)
    text = torch.randn(1, 3, 7) * 5 + 2
    expected = (text - text.mean()) / text.std(unbiased=False)
    padded = torch.cat([text, torch.full((1, 2, 7), 1e3)], dim=1)
    mask = torch.tensor([[True, True, True, False, False]])
    assert_close(mix([padded], mask)[:, :3], expected)
    assert not mix([padded], mask)[:, 3:].any()


@pytest.mark.parametrize("layer", [0, 2])
def test_a_classifier_of_one_layer_reads_that_layer(layer):
    model = build("elmo", "classification", classes=3, layer=layer, **TINY).eval()
    layers, _ = model.reader(*pad_spellings([sentence("the cat sat")]))
    found, _ = model.embed(*pad_spellings([sentence("the cat sat")]))
    assert_close(found[-1], layers[layer])
    assert model.mix.weights.tolist() == [float(n == layer) for n in range(3)]


def test_a_frozen_classifier_learns_the_mix_and_leaves_the_language_model():
    model = build("elmo", "classification", classes=3, **TINY)
    learned = {name.split(".")[0] for name, p in model.named_parameters() if p.requires_grad}
    assert learned == {"mix", "hidden", "output"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layer": 3}, r"layer \(3\) must be from 0 to layers \(2\)"),
        ({"filters": ()}, r"filters \(\(\)\) must be pairs"),
        ({"cell_clip": -1.0}, r"cell_clip \(-1.0\) must be above 0, or 0"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        ELMoConfig(**settings)
