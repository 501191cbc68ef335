"""What a translator is trained on, against plain torch."""

import math
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from regard.attention import Attention, Dot
from regard.config import Recipe, TrainingConfig
from regard.data.batches import Words
from regard.data.buckets import Translations
from regard.data.config import DataConfig
from regard.models import build
from regard.tasks.language_model import NextWord
from regard.tasks.target_words import ConsistentTargetWord, NextTargetWord
from regard.tasks.translation import Translation
from regard.text import TextConfig, Tokenizer

PAIRS = [([5, 6, 7], [8, 9]), ([4], [10, 4, 6, 5])]
PAD, START, END = 0, 1, 2


@pytest.fixture
def model():
    torch.manual_seed(1)
    return build("bahdanau", vocabulary_size=11, embedding_size=3, hidden_size=5, readout_size=7)


def batch():
    return Translations(PAIRS, START, END, PAD, tokens=100).collate(PAIRS)


def by_hand(model, smoothing=0.0):
    """−Σ log p(word | words before it), sentence by sentence and without padding."""
    total = 0.0
    for source, target in PAIRS:
        alone = Translations([(source, target)], START, END, PAD, tokens=100)
        logits = model(alone.collate([(source, target)]))[0]  # (target + 1, vocabulary)
        wanted = torch.tensor([*target, END])
        total += F.cross_entropy(logits, wanted, reduction="sum", label_smoothing=smoothing).item()
    return total


def test_each_target_word_and_the_end_is_predicted_from_those_before_it(model):
    objective = NextTargetWord(model.eval())
    assert objective(batch()).parts["loss"].item() == pytest.approx(by_hand(model), rel=1e-5)
    assert objective.counts(batch()) == {"loss": 3 + 5}


def test_targets_that_do_not_count_are_left_out(model):
    whole, none = batch(), torch.zeros(2, 5, dtype=torch.bool)
    first = none.index_fill(0, torch.tensor([0]), True) & whole.target_mask
    parts = []
    for mask in (first, whole.target_mask & ~first):
        fields = {**vars(whole), "loss_mask": mask}
        parts.append(NextTargetWord(model.eval())(type(whole)(**fields)).parts["loss"].item())
    assert all(part > 0 for part in parts)
    assert sum(parts) == pytest.approx(by_hand(model), rel=1e-5)


def test_labels_are_smoothed_in_training_alone(model):
    objective = NextTargetWord(model.train(), label_smoothing=0.2)
    loss = objective(batch()).parts["loss"].item()
    assert loss == pytest.approx(by_hand(model, smoothing=0.2), rel=1e-5)
    assert objective.eval()(batch()).parts["loss"].item() == pytest.approx(by_hand(model), rel=1e-5)


def test_two_guesses_without_dropout_are_one(model):
    objective = ConsistentTargetWord(model.train(), label_smoothing=0.2, strength=5.0)
    outcome = objective(batch())
    wanted = pytest.approx(by_hand(model, smoothing=0.2), rel=1e-5)
    assert outcome.parts["loss"].item() == wanted
    assert outcome.reports["divergence"].value == 0
    assert objective.eval()(batch()).parts["loss"].item() == pytest.approx(by_hand(model), rel=1e-5)


def test_guesses_under_two_dropouts_differ_and_that_costs():
    torch.manual_seed(1)
    model = build("transformer", preset="tiny", vocabulary_size=11).train()
    losses = []
    for strength in (0.0, 5.0):
        torch.manual_seed(2)
        outcome = ConsistentTargetWord(model, 0.0, strength)(batch())
        losses.append(outcome.parts["loss"].item())
    assert outcome.reports["divergence"].value > 0
    extra = 2.5 * outcome.reports["divergence"].value.item()
    assert losses[1] - losses[0] == pytest.approx(extra, rel=1e-4)


def test_hard_attention_is_not_asked_twice():
    recipe = numbers_recipe()
    task = Translation(replace(recipe, task={**recipe.task, "consistency": 5.0}))
    sizes = {"vocabulary_size": 11, "embedding_size": 4, "hidden_size": 4, "layers": 1}
    assert isinstance(task.objective(build("luong", **sizes)), ConsistentTargetWord)
    with pytest.raises(ValueError, match=r"consistency \(5.0\) is for soft attention"):
        task.objective(build("luong", **sizes, scope="hard"))


def test_two_guesses_begin_at_the_step_that_is_named_and_a_resumed_run_knows_it(tmp_path):
    task, pairs, resources = bpe_task(tmp_path, consistency=5.0, consistency_from=2)
    sizes = {"vocabulary_size": resources.words.size, "model_size": 8, "heads": 2, "layers": 1}
    model = build("transformer", **sizes, feedforward_size=8).train()
    objective, batch = task.objective(model), task.training_feed(pairs, resources).batch(0, 0)

    def guesses_twice(objective):
        return "divergence" in objective(batch).reports

    assert not guesses_twice(objective)
    objective.finish_step({})
    assert not guesses_twice(objective)
    objective.finish_step({})
    assert guesses_twice(objective)
    resumed = task.objective(model)
    resumed.load_state_dict(objective.own_state(), strict=False)
    assert guesses_twice(resumed)
    assert not guesses_twice(objective.eval())


def bpe_task(tmp_path, **settings):
    lines = "barking dogs\nlower newer lowest\n"
    for side in ("source", "target"):
        (tmp_path / side).write_text(lines)
    recipe = Recipe(
        task={"kind": "translation", **settings},
        model={"name": "transformer"},
        training=TrainingConfig(epochs=1),
        data=DataConfig(train=[str(tmp_path / "source"), str(tmp_path / "target")]),
        text=TextConfig(kind="bpe", vocabulary_size=60),
    )
    task = Translation(recipe)
    pairs = task.read("train")
    return task, pairs, task.prepare(pairs, None)


def test_with_bpe_dropout_every_epoch_cuts_the_words_anew_and_scoring_never(tmp_path):
    task, pairs, resources = bpe_task(tmp_path, bpe_dropout=0.5)
    feed, words = task.training_feed(pairs, resources), resources.words
    epochs = [feed.batch(epoch, 0) for epoch in range(6)]
    sources = [sorted(batch.source.tolist()) for batch in epochs]
    assert len({str(rows) for rows in sources}) > 1
    again = task.training_feed(pairs, resources).batch(3, 0)
    assert torch.equal(again.source, epochs[3].source)
    assert torch.equal(again.target_output, epochs[3].target_output)
    for batch in epochs:
        assert sorted(map(words.decode, batch.source.tolist())) == sorted(s for s, _ in pairs)
        assert sorted(map(words.decode, batch.target_output.tolist())) == sorted(
            t for _, t in pairs
        )
    scored = task.scoring_feed(pairs, resources)
    assert [list(s) for s, _ in scored.pairs] == [words.encode(s).ids for s, _ in pairs]


def test_bpe_dropout_needs_pieces_that_are_merged(tmp_path):
    task, pairs, resources = bpe_task(tmp_path, bpe_dropout=0.5)
    words = Tokenizer.train(iter(["a b"]), TextConfig(), task.roles)
    with pytest.raises(ValueError, match=r"bpe_dropout \(0\.5\) is for text\.kind 'bpe'"):
        task.training_feed(pairs, replace(resources, tokenizer=words))
    with pytest.raises(ValueError, match=r"bpe_dropout \(2\.0\) must be from 0 to 1"):
        bpe_task(tmp_path, bpe_dropout=2.0)


def test_a_language_model_s_labels_are_smoothed_in_training_alone():
    torch.manual_seed(1)
    model = build("rnn", vocabulary_size=11, hidden_size=5)
    ids = torch.randint(11, (2, 7))
    words = Words(ids[:, :-1], ids[:, 1:], torch.ones(2, 6, dtype=torch.bool))
    for training, smoothing in ((True, 0.3), (False, 0.0)):
        objective = NextWord(model, label_smoothing=0.3).train(training)
        found = objective(words)
        expected = F.cross_entropy(
            model(words).flatten(0, 1),
            words.targets.flatten(),
            reduction="sum",
            label_smoothing=smoothing,
        )
        assert found.parts["loss"].item() == pytest.approx(expected.item(), rel=1e-5)
    means = {"loss": 2.0}
    assert objective.metrics(means) == {
        "loss": 2.0,
        "perplexity": pytest.approx(math.exp(2)),
        "bits": pytest.approx(2 / math.log(2)),
    }


class Points(torch.nn.Module):
    """Looks from each target word where it is told to; says nothing of use."""

    def __init__(self, places):
        super().__init__()
        self.places = places  # (batch, target)
        self.attention = Attention(Dot(), sides=("target", "source"))

    def forward(self, batch):
        length = batch.source.shape[1]
        queries = 9.0 * F.one_hot(self.places, length).float()
        keys = torch.eye(length).expand(len(batch.source), -1, -1)
        return self.attention(queries, keys, keys).context


def test_links_are_the_strongest_weights_and_the_end_has_none():
    task = Translation(numbers_recipe())
    links = [[(0, 0), (2, 1)], [(0, 0), (0, 1), (0, 3)]]
    feed = Translations(PAIRS, START, END, PAD, tokens=100, links=links)
    assert feed.buckets.plan(0) == ((0, 1),)
    places = torch.tensor([[0, 1, 2, 0, 0], [0, 0, 0, 0, 0]])  # the second word is a mistake
    told = task.observe(Points(places), feed)
    # Six links are found, four of them among the five of the gold: 1 − (4 + 4) / (6 + 5).
    assert told["aer"] == pytest.approx(1 - 8 / 11)
    assert task.observe(torch.nn.Identity(), feed) == {}


def test_number_names_are_scored_and_looked_at_as_a_user_writes_them(tmp_path):
    task = Translation(numbers_recipe())
    written = [("forty-two", "zweiundvierzig"), ("nine", "neun")]
    segmented = [("forty two", "zwei und vierzig"), ("nine", "neun")]
    assert task.examples(written) == task.examples(segmented) == segmented
    for name, side in zip(("en", "de"), zip(*written, strict=True), strict=True):
        (tmp_path / name).write_text("\n".join(side) + "\n")
    assert task.read_files([str(tmp_path / "en"), str(tmp_path / "de")]) == segmented
    resources = task.prepare(segmented, None)
    model = build(
        "bahdanau",
        vocabulary_size=resources.words.size,
        embedding_size=3,
        hidden_size=5,
        attention_size=5,
        readout_size=7,
    )
    (look,) = task.look(model, resources, *written[0])
    assert [label.text for label in look.queries] == ["zwei", "und", "vierzig", "</s>"]
    assert [label.text for label in look.keys] == ["forty", "two"]


def test_a_look_at_an_empty_source_is_refused_with_a_target_too():
    task = Translation(numbers_recipe())
    resources = task.prepare([("nine", "neun")], None)
    with pytest.raises(ValueError, match=r"text \(''\) has no tokens to look at"):
        task.look(torch.nn.Identity(), resources, "", "neun")


def numbers_recipe():
    sections = {"task": {"kind": "translation"}, "model": {"name": "bahdanau"}}
    data = DataConfig(generator="numbers-de")
    return Recipe(**sections, training=TrainingConfig(steps=1), data=data)
