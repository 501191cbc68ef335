"""A language model that reads both ways: what is guessed from what, trained, saved, asked."""

import math
import random

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.data.spelled import SpelledSentences
from regard.models.catalog import build
from regard.tasks.bidirectional import BothWays
from regard.text.spelling import spell

SIZES = """
character_size = 5
filters = [[1, 8], [3, 8]]
highway_layers = 1
projection_size = 8
hidden_size = 16
dropout = 0.0
"""
RECIPE = """
seed = 1
[task]
kind = "bidirectional-language-model"
[data]
root = "{root}"
train = "train.txt"
valid = "valid.txt"
unit = "sentence"
[text]
vocabulary_size = 9
lowercase = true
[model]
name = "elmo"
{sizes}
[training]
steps = 60
tokens = 60
rate = 0.02
evaluate_every = 30
log_every = 20
"""
LABELLED = """
seed = 1
[task]
kind = "classification"
[data]
root = "{root}"
train = "labelled.txt"
valid = "labelled.txt"
[text]
lowercase = true
[model]
name = "elmo"
from = "{run}"
fresh = {fresh}
{sizes}
{layer}
[training]
steps = 200
tokens = 60
rate = 0.02
evaluate_every = 100
"""
NOUNS, VERBS = ["Cats", "Dogs", "Owls"], ["run", "sleep"]


def sentences(count, seed):
    chance = random.Random(seed)
    return [f"{chance.choice(NOUNS)} {chance.choice(VERBS)} ." for _ in range(count)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bidirectional")
    lines = sentences(120, 1)
    # Two sentences a line, which data.unit takes apart.
    paired = [" ".join(lines[at : at + 2]) for at in range(0, len(lines), 2)]
    (folder / "train.txt").write_text("\n".join(paired) + "\n")
    (folder / "valid.txt").write_text("\n".join(sentences(40, 2)) + "\n")
    labelled = [f"{int('Cats' in line)} {line}" for line in sentences(60, 3)]
    (folder / "labelled.txt").write_text("\n".join(labelled) + "\n")
    (folder / "recipe.toml").write_text(RECIPE.format(root=folder, sizes=SIZES))
    return regard.train(folder / "recipe.toml", folder / "run")


def test_forward_guesses_the_next_word_and_backward_the_one_before():
    torch.manual_seed(3)
    model = build(
        "elmo",
        "bidirectional-language-model",
        vocabulary_size=11,
        character_size=3,
        filters=((2, 5),),
        projection_size=5,
        hidden_size=7,
        dropout=0.0,
    )
    texts = [[spell("a"), spell("bb"), spell("c")], [spell("dd")]]
    feed = SpelledSentences(texts, [[3, 4, 5], [6]], start=1, end=2, tokens=100)
    batch = feed.batch(0, 0)  # in order of length
    assert batch.targets.tolist() == [[1, 6, 2, 2, 2], [1, 3, 4, 5, 2]]
    assert batch.mask.sum(dim=1).tolist() == [3, 5]
    objective = BothWays(model)
    ahead, back = model(batch).log_softmax(dim=-1)
    forward = -sum(ahead[0, at, word] for at, word in enumerate([6, 2]))
    forward -= sum(ahead[1, at, word] for at, word in enumerate([3, 4, 5, 2]))
    backward = -sum(back[0, at + 1, word] for at, word in enumerate([1, 6]))
    backward -= sum(back[1, at + 1, word] for at, word in enumerate([1, 3, 4, 5]))
    parts = objective(batch).parts
    assert_close(parts, {"forward": forward, "backward": backward})
    assert objective.counts(batch) == {"forward": 6, "backward": 6}
    metrics = objective.metrics({"forward": math.log(4), "backward": math.log(9)})
    assert metrics["perplexity"] == pytest.approx(6)
    assert metrics["forward_perplexity"] == pytest.approx(4)
    assert metrics["backward_perplexity"] == pytest.approx(9)


def test_a_trained_run_comes_near_what_can_be_known(run):
    # Forward: which of three nouns, which of two verbs; a full stop and the end are certain.
    best = math.exp((math.log(3) + math.log(2)) / 4)
    values = run.evaluate()
    assert values["tokens"] == 160
    assert best * 0.97 < values["forward_perplexity"] < best * 1.15
    assert best * 0.97 < values["backward_perplexity"] < best * 1.15
    assert run.recipe.text.lowercase and run.tokenizer.id_of("cats") is not None


def test_embed_gives_a_vector_a_word_by_layer_or_mixed(run):
    layers = [run.embed("Cats run .", layer=layer)[0].output for layer in range(3)]
    mixed = run.embed("Cats run .")[0].output
    assert [len(layer) for layer in layers] == [3, 3, 3]
    assert_close(torch.tensor(layers).mean(dim=0), torch.tensor(mixed))
    text = run.embed("Cats run .", pooling="mean")[0].output
    assert_close(torch.tensor(text), torch.tensor(mixed).mean(dim=0))
    assert run.embed("")[0].output == []


def test_words_that_no_vocabulary_holds_have_vectors_of_their_own(run):
    one, other = (run.embed(f"{word} run .", layer=0)[0].output[0] for word in ("zebras", "gnus"))
    assert (torch.tensor(one) - torch.tensor(other)).abs().max() > 1e-3


def test_the_state_is_carried_on_only_if_asked_and_across_groups_of_texts(run):
    texts = ["Cats run .", "Dogs sleep .", "Cats run ."]
    fresh = [each.output for each in run.embed(texts, layer=2)]
    assert_close(torch.tensor(fresh[0]), torch.tensor(fresh[2]))
    carried = [each.output for each in run.embed(texts, layer=2, stateful=True)]
    assert_close(torch.tensor(carried[0]), torch.tensor(fresh[0]))
    assert (torch.tensor(carried[2]) - torch.tensor(fresh[2])).abs().max() > 1e-3
    asking = run.bind("embed", layer=2, stateful=True)
    groups = [each.output for text in texts for each in asking.answers([text])]
    assert_close(torch.tensor(groups), torch.tensor(carried))


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"layer": 3}, r"layer \(3\) must be from 0"), ({"pooling": "class"}, r"pooling \('class'\)")],
)
def test_settings_that_embed_does_not_have_are_refused(run, settings, message):
    with pytest.raises(ValueError, match=message):
        run.embed("Cats run .", **settings)


def test_verify_s_pairs_are_equal(run):
    claims = 0
    with torch.no_grad():
        for check in run.task.checks(run.model, run.resources, 1):
            assert_close(check.found, check.expected, atol=1e-5, rtol=1e-5)
            claims += 1
    assert claims == 2


@pytest.mark.parametrize("layer", [None, 0])
def test_a_classifier_learns_the_mix_on_a_frozen_model_and_shows_it(run, layer, tmp_path):
    recipe = run.folder.parent / f"classifier-{layer}.toml"
    line = "" if layer is None else f"layer = {layer}"
    fresh = '["mix", "hidden", "output"]' if layer is None else '["hidden", "output"]'
    places = {"root": recipe.parent, "run": run.folder}
    recipe.write_text(LABELLED.format(**places, sizes=SIZES, layer=line, fresh=fresh))
    classifier = regard.train(recipe, tmp_path / "run")
    values = classifier.evaluate()
    assert values["accuracy"] > 0.95
    mix = [values[f"mix_{each}"] for each in range(3)]
    assert sum(mix) == pytest.approx(1)
    [look] = classifier.look("Cats run .")
    assert [label.text for label in look.keys] == ["words", "layer 1", "layer 2"]
    assert look.weights.flatten().tolist() == pytest.approx(mix)
    before, after = run.model.reader.state_dict(), classifier.model.reader.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    mixed = torch.tensor(classifier.embed("Cats run .")[0].output)
    layers = [classifier.embed("Cats run .", layer=each)[0].output for each in range(3)]
    if layer is None:
        assert max(mix) - min(mix) > 0.01
        weighted = (torch.tensor(mix)[:, None, None] * torch.tensor(layers)).sum(dim=0)
        assert_close(mixed, classifier.model.mix.gamma.item() * weighted)
    else:
        assert mix == [1.0, 0.0, 0.0]
        assert_close(mixed, torch.tensor(layers[0]))


def test_a_text_without_sentences_is_refused(tmp_path):
    recipe = RECIPE.format(root=tmp_path, sizes=SIZES).replace('"sentence"', '"character"')
    (tmp_path / "recipe.toml").write_text(recipe)
    with pytest.raises(ValueError, match=r"data.unit \('character'\) has no sentences"):
        regard.train(tmp_path / "recipe.toml", tmp_path / "run")
