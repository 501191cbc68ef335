"""Hidden words and next sentences: from raw text to a run that guesses."""

import json
import math
import random

import pytest
import torch
from click.testing import CliRunner
from torch.nn import functional as F

import regard
from regard.cli import main
from regard.data.batches import MaskedTexts
from regard.models.bert import Bert, BertConfig
from regard.tasks.marks import encode_around
from regard.tasks.pretraining import (
    MaskedWords,
    MaskedWordsAndNext,
    split_at_blank_lines,
    split_at_titles,
)
from regard.training.train import train

RECIPE = """
seed = 1
[task]
kind = "pretraining"
[data]
train = "train.txt"
valid = "valid.txt"
[text]
kind = "wordpiece"
vocabulary_size = 60
[model]
name = "bert"
model_size = 16
heads = 2
layers = 2
longest = 40
dropout = 0.1
[training]
steps = 12
length = 24
tokens = 300
evaluate_every = 6
"""
TOPICS = (["cat", "purrs", "milk"], ["ship", "sails", "sea"], ["star", "shines", "sky"])


def text(documents, seed):
    chance = random.Random(seed)
    lines = []
    for number in range(documents):
        words = TOPICS[number % 3]
        for _ in range(8):
            said = [chance.choice(["the", "a"]), *chance.choices(words, k=4)]
            lines.append(" ".join(said) + " . Then <unk> was the " + chance.choice(words) + " .")
        lines.append("")
    return "\n".join(lines)


@pytest.fixture
def recipe(tmp_path):
    (tmp_path / "train.txt").write_text(text(12, 1))
    (tmp_path / "valid.txt").write_text(text(6, 2))
    path = tmp_path / "little.toml"
    path.write_text(RECIPE)
    return path


@pytest.fixture
def run(recipe, tmp_path):
    return regard.train(recipe, tmp_path / "run")


def typed(*words):
    done = CliRunner().invoke(main, [str(word) for word in words])
    return done.exit_code, done.output


def test_a_run_tells_both_accuracies_and_what_always_guessing_one_word_would_give(run):
    values = run.evaluate()
    assert 0 <= values["masked_accuracy"] <= 1 and 0 <= values["nsp_accuracy"] <= 1
    assert 0 < values["commonest"] < 1
    assert values["loss"] == pytest.approx(math.log(values["perplexity"]), abs=2)
    assert values["signature"].startswith("masked_accuracy")
    assert run.evaluate() | {"seconds": 0} == values | {"seconds": 0}


def test_words_and_marks_are_told_apart(run):
    words = run.tokenizer
    assert set(words.roles) >= {"pad", "unknown", "class", "separator", "mask"}
    assert words.id_of("unk") is None  # the corpus leaves these words out, and nobody spells them


def test_a_resumed_run_ends_like_one_never_stopped(recipe, tmp_path):
    settings = ["training.save_every=5", "training.log_every=1"]

    def stop(event, values):
        if values.get("step") == 8:
            raise KeyboardInterrupt

    train(recipe, tmp_path / "whole", settings)
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "cut", settings, report=stop)
    train(recipe, tmp_path / "cut", settings, resume=True)
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "cut"))
    assert one == two


class Batches:
    """A batch with padding, hidden words and one pair that is not asked about."""

    def __init__(self):
        torch.manual_seed(1)
        self.model = Bert(
            BertConfig(vocabulary_size=23, model_size=12, heads=3, layers=1, longest=9, dropout=0.0)
        )
        ids = torch.randint(5, 23, (3, 7))
        mask = torch.arange(7) < torch.tensor([[7], [5], [3]])
        asked = torch.zeros(3, 7, dtype=torch.bool)
        asked[0, 1] = asked[0, 4] = asked[2, 1] = True
        unrelated = torch.tensor([0, 1, 0])
        pairs = torch.tensor([True, True, False])
        self.batch = MaskedTexts(
            ids.masked_fill(asked, 3), mask, (ids % 2), ids, asked, unrelated, pairs
        )


@pytest.fixture
def made():
    return Batches()


@pytest.mark.parametrize("training", [True, False])
def test_each_part_is_a_sum_over_its_own_count(made, training):
    batch, model = made.batch, made.model.train(training)
    objective = MaskedWordsAndNext(model)
    parts, reports, *_ = objective(batch)
    assert objective.counts(batch) == {"masked": 3, "nsp": 2}
    log_odds = model(batch).log_softmax(dim=-1).detach()
    expected = -sum(log_odds[r, p, batch.targets[r, p]] for r, p in ((0, 1), (0, 4), (2, 1)))
    assert parts["masked"].item() == pytest.approx(float(expected), rel=1e-5)
    told = model.next_logits(model.features(batch)).log_softmax(dim=-1).detach()
    assert parts["nsp"].item() == pytest.approx(float(-told[0, 0] - told[1, 1]), rel=1e-5)
    assert reports["nsp_accuracy"].items == 2
    if not training:
        right = (model(batch).argmax(dim=-1) == batch.targets) & batch.loss_mask
        assert reports["masked_accuracy"] == (right.sum(), 3)


def test_pairs_that_follow_are_learned_from_as_well_as_those_that_do_not(made):
    """A loss that leaves label 0 out, as some do, has no gradient here."""
    batch, model = made.batch, made.model
    only = MaskedTexts(
        batch.ids, batch.mask, batch.segments, batch.targets, batch.loss_mask,
        torch.zeros(3, dtype=torch.long), torch.ones(3, dtype=torch.bool),
    )  # fmt: skip
    MaskedWordsAndNext(model)(only).parts["nsp"].backward()
    assert model.next_sentence.weight.grad.abs().max() > 0


def test_gradients_are_those_of_the_loss_written_out(made):
    batch, model = made.batch, made.model.train()
    grads = []
    for objective in (True, False):
        model.zero_grad()
        if objective:
            parts = MaskedWordsAndNext(model)(batch).parts
            (parts["masked"] / 3 + parts["nsp"] / 2).backward()
        else:
            logits, pairs = model(batch), model.next_logits(model.features(batch))
            hidden, asked = batch.loss_mask, batch.pair_mask
            masked = F.cross_entropy(logits[hidden], batch.targets[hidden])
            (masked + F.cross_entropy(pairs[asked], batch.unrelated[asked])).backward()
        grads.append([weight.grad.clone() for weight in model.parameters()])
    for one, two in zip(*grads, strict=True):
        torch.testing.assert_close(one, two, atol=1e-6, rtol=1e-4)


def test_a_model_that_tells_no_next_sentence_learns_from_words_alone(recipe, tmp_path):
    for settings in (["model.next_sentence=false"], ['training.feed="texts"']):
        folder = tmp_path / settings[0][:9]
        values = regard.train(recipe, folder, settings=settings).evaluate()
        assert "nsp_accuracy" not in values and "masked_accuracy" in values
    assert MaskedWords(Bert(BertConfig(vocabulary_size=7, model_size=12))).weights == {"masked": 1}


def test_documents_end_at_blank_lines_or_begin_at_titles():
    lines = ["A b .", "c .", "", " ", "d ."]
    assert list(split_at_blank_lines(lines)) == [["A b .", "c ."], ["d ."]]
    wiki = [
        "",
        " = One = ",
        "",
        " text of one ",
        " = = Part = = ",
        " more ",
        " = Two = ",
        " x = 3 ",
    ]
    assert list(split_at_titles(wiki)) == [[" text of one ", " more "], [" x = 3 "]]


def test_spellings_stand_for_an_id_wherever_they_are(run):
    words = run.tokenizer
    unknown = words.id_of_role("unknown")
    (ids,) = encode_around(["the <unk> purrs<unk>"], words, {"<unk>": unknown})
    the, purrs = words.encode("the").ids, words.encode("purrs").ids
    assert ids == [*the, unknown, *purrs, unknown]


def test_fill_says_the_likeliest_words_with_the_probabilities_of_the_model(run):
    words = run.tokenizer
    (answer,) = run.fill("the [MASK] purrs", n_best=7)
    ids = [words.id_of_role("class"), *words.encode("the").ids, words.id_of_role("mask")]
    place = len(ids) - 1
    ids += [*words.encode("purrs").ids, words.id_of_role("separator")]
    odds = run.logits(torch.tensor([ids]))[0, place].softmax(dim=-1)
    assert [each.score for each in answer.hypotheses] == pytest.approx(
        odds.topk(7).values.tolist(), rel=1e-4
    )
    best = words.decode([int(odds.argmax())])
    assert answer.output == best and answer.text == f"the {best} purrs"
    assert len(run.fill("the <mask> purrs")[0].hypotheses) == 5  # another spelling of it


def test_several_masks_have_a_word_each(run):
    (answer,) = run.fill("[MASK] cat [MASK]", n_best=3)
    assert len(answer.hypotheses) == 3 and len(answer.output.split()) == 2
    scores = [each.score for each in answer.hypotheses]
    assert scores == sorted(scores, reverse=True)


def test_fill_without_a_mask_is_one_clear_line(run):
    code, said = typed("fill", run.folder, "the cat purrs")
    assert code == 2
    assert said == "regard: text ('the cat purrs') hides no word: write <mask> in place of one\n"


def test_fill_and_embed_are_commands(run, tmp_path):
    code, said = typed("fill", run.folder, "the [MASK] purrs", "--n-best", 2)
    assert code == 0 and len(said.splitlines()) == 2
    code, said = typed("embed", run.folder, "the cat", "a ship sails", "--json", "--layer", 1)
    first = json.loads(said.splitlines()[0])
    assert code == 0 and first["input"] == "the cat" and len(first["output"]) == 16
    code, said = typed("embed", run.folder, "the cat")
    assert code == 0 and len(said.split()) == 16
    file = tmp_path / "vectors.npy"
    code, said = typed("embed", run.folder, "the cat", "a ship", "--out", file)
    assert code == 0 and said == f"saved {file}: 2 vectors\n"
    assert typed("embed", run.folder, "the cat", "--layer", 5)[0] == 2
    code, said = typed("embed", run.folder, "the cat", "--stateful")
    assert code == 2 and "embed has no setting 'stateful' here" in said


@torch.no_grad()
def test_embeddings_are_the_first_vector_or_the_mean_of_all_real_ones(run):
    words = run.tokenizer
    texts = ["the cat purrs", "ship", "a star shines the sky a star"]
    found = {
        (pooling, layer): run.embed(texts, pooling=pooling, layer=layer)
        for pooling in ("mean", "class")
        for layer in (None, 0, 1, -1)
    }
    for number, text in enumerate(texts):
        ids = [words.id_of_role("class"), *words.encode(text).ids, words.id_of_role("separator")]
        row = torch.tensor([ids])
        states = list(run.model.hidden_states(MaskedTexts(row, torch.ones_like(row).bool())))
        for (pooling, layer), answers in found.items():
            state = states[-1 if layer is None else layer][0]
            expected = state[0] if pooling == "class" else state.mean(dim=0)
            torch.testing.assert_close(torch.tensor(answers[number].output), expected)


def test_a_look_labels_marks_and_the_second_text(run):
    looks = run.look("the [MASK] purrs", "a ship")
    assert [look.path for look in looks] == ["layers.0.attention", "layers.1.attention"]
    labels = [label.text for label in looks[0].keys]
    assert labels[0] == "<cls>" and labels[-1] == "<sep>" and "[MASK]" in labels
    assert labels.count("<sep>") == 2 and all(name.endswith("₂") for name in labels[-3:-1])
    text = looks[0].key_text
    assert [text[k.start : k.end] for k in looks[0].keys if k.text == "[MASK]"] == ["[MASK]"]


def test_a_pretrained_encoder_goes_on_as_a_classifier(run, tmp_path):
    lines = [f"{n % 2} the {TOPICS[n % 2][n % 3]}" for n in range(40)]
    (tmp_path / "labels.txt").write_text("\n".join(lines) + "\n")
    recipe = tmp_path / "classifier.toml"
    recipe.write_text(
        f"""
[task]
kind = "classification"
[data]
train = "labels.txt"
valid = "labels.txt"
[text]
from = "{run.folder}"
[model]
from = "{run.folder}"
fresh = ["classifier"]
[training]
steps = 1
rate = 0.0
"""
    )
    tuned = regard.train(recipe, tmp_path / "tuned")
    for name, weight in run.model.state_dict().items():
        if name in tuned.model.state_dict():
            assert torch.equal(weight, tuned.model.state_dict()[name]), name
    (answer,) = tuned.classify("the cat", n_best=2)
    assert {each.output for each in answer.hypotheses} == {"0", "1"}
    looks = tuned.look("the cat purrs")
    labels = [label.text for label in looks[0].keys]
    assert labels[0] == "<cls>" and labels[-1] == "<sep>"


def test_a_text_beyond_the_last_position_is_refused(run):
    with pytest.raises(ValueError, match=r"the text has 52 tokens.*40 positions \(longest\)"):
        run.fill("the [MASK] " + "cat " * 48)
