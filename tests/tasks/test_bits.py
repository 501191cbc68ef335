"""Bit sequences: episodes worked out by hand, and a machine that learns to copy them."""

import math

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.data.batches import Bits
from regard.data.bits import PATTERNS, BitFeed, copy_batch
from regard.tasks.bits import BitLikelihood, name_steps

RECIPE = """
seed = 1
[task]
kind = "bits"
width = 2
longest = 2
valid_length = 2
test_length = 3
[data]
examples = 6400
valid_examples = 40
[model]
name = "ntm"
controller_size = 24
slots = 8
slot_size = 5
[training]
steps = 400
batch = 16
optimizer = "adam"
rate = 1e-2
clip = 0.5
schedule = { kind = "cosine" }
evaluate_every = 100
[evaluation]
batch = 20
"""
PATTERNS_LEARNED = [
    ("repeat-copy", "longest_repeat = 2"),
    ("recall", "shortest = 2"),
]
MEMORY = ("adds", "reads", "write weights", "read weights")


def generator():
    return torch.Generator().manual_seed(1)


def test_a_copy_is_asked_for_behind_a_mark():
    sequence = torch.tensor([[[1.0, 0.0], [1.0, 1.0]]])
    episode = copy_batch(sequence, 1, repeats_told=False)
    assert episode.inputs[0].tolist() == [[1, 0, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert episode.targets[0].tolist() == [[0, 0], [0, 0], [0, 0], [1, 0], [1, 1]]
    assert episode.loss_mask[0].tolist() == [False, False, False, True, True]
    assert episode.mask.all()


def test_repeated_copies_end_with_a_mark():
    sequence = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    episode = copy_batch(sequence, 3, repeats_told=True)
    assert episode.inputs[0, 2].tolist() == [0, 0, 1, pytest.approx((3 - 5.5) / 2.87)]
    said = episode.targets[0][episode.loss_mask[0]].tolist()
    assert said == [[1, 0, 0], [0, 1, 0]] * 3 + [[0, 0, 1]]


def test_the_item_behind_the_one_asked_for_is_recalled():
    episode = PATTERNS["recall"].make(generator(), 5, 6, 4, 1)
    for inputs, targets in zip(episode.inputs, episode.targets, strict=True):
        items = [inputs[4 * place + 1 : 4 * place + 4, :6] for place in range(4)]
        assert [int(inputs[4 * place, 6]) for place in range(4)] == [1] * 4
        question = inputs[17:20, :6]
        (asked,) = [place for place, item in enumerate(items) if torch.equal(item, question)]
        assert torch.equal(targets[-3:], items[asked + 1])
        assert inputs[[16, 20], 7].tolist() == [1, 1]


def test_every_batch_is_a_function_of_seed_epoch_and_index():
    feed = BitFeed(PATTERNS["copy"], 3, (1, 6), (1, 1), rows=4, batches=60, seed=5)
    lengths = {int(feed.batch(0, i).loss_mask[0].sum()) for i in range(60)}
    assert lengths == {1, 2, 3, 4, 5, 6}
    assert torch.equal(feed.batch(1, 3).inputs, feed.batch(1, 3).inputs)
    assert not torch.equal(feed.batch(0, 0).inputs[:, 0], feed.batch(1, 0).inputs[:, 0])


def test_losses_and_errors_are_counted_by_hand():
    class Fixed(torch.nn.Module):
        def forward(self, batch):
            logit = math.log(3)  # p = 3/4 of a one
            return torch.tensor([[[0.0, 0.0], [logit, -logit]], [[9.0, 9.0], [logit, logit]]])

    targets = torch.tensor([[[0.0, 0.0], [1.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]])
    counted = torch.tensor([[False, True], [False, True]])
    batch = Bits(targets, targets, torch.ones(2, 2, dtype=torch.bool), counted)
    objective = BitLikelihood(Fixed())
    outcome = objective(batch)
    # Three bits right with ¾, one wrong with ¼.
    expected = -3 * math.log(3 / 4) - math.log(1 / 4)
    assert outcome.parts["loss"].item() == pytest.approx(expected)
    assert objective.counts(batch) == {"loss": 4}
    reports = {k: each.value.item() / each.items for k, each in outcome.reports.items()}
    assert reports["wrong_bits"] == 0.5
    assert reports["exact_match"] == 0.5
    assert reports["bits"] == pytest.approx(expected / math.log(2) / 2)


def test_a_machine_learns_to_copy(tmp_path):
    (tmp_path / "copy.toml").write_text(RECIPE)
    run = regard.train(tmp_path / "copy.toml", tmp_path / "run")
    assert run.evaluate()["exact_match"] == 1.0
    assert run.evaluate("test")["tokens"] == 40 * (3 + 1 + 3)
    assert run.evaluate(examples=[2])["exact_match"] == 1.0
    episode, *looks = run.look("01 11 10")
    assert {look.path for look in looks} == {
        f"{heads}.attention.{stage}"
        for heads in ("read", "write")
        for stage in ("content", "gated", "shifted", "sharpened")
    }
    read = next(look for look in looks if look.path == "read.attention.sharpened")
    assert read.kind == "memory"
    steps = ["in 0", "in 1", "in 2", "mark", "out 0", "out 1", "out 2"]
    assert [label.text for label in read.queries] == steps
    assert read.weights.shape == (1, 7, 8)
    assert len(run.look("3")) == 9
    rows = episode.weights.shape[1]
    assert_close(episode.weights[5], read.weights[0].T[:rows])
    with pytest.raises(ValueError, match=r"text \('012 01'\) must be vectors of 2 bits, as 01"):
        run.look("012 01")
    with pytest.raises(ValueError, match=r"text \('3000'\) must be a length from 1 to 2,000"):
        run.look("3000")
    # Two vectors over time, rows × steps; what is said before the answer is not shown.
    episode = run.look("01 11")[0]
    assert episode.heads == ("inputs", "outputs", *MEMORY)
    inputs, outputs = episode.weights[:2]
    assert inputs[:3].tolist() == [[0, 1, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 0, 0]]
    assert outputs[:2, 3:].round().tolist() == [[0, 1], [1, 1]]
    assert episode.mask[1, :3].tolist() == [[False] * 3 + [True] * 2] * 2 + [[False] * 5]


def test_what_happens_at_each_step_is_named():
    recall = PATTERNS["recall"].make(generator(), 1, 6, 2, 1)
    item, question = ["mark", "in {}", "in {}", "in {}"], ["mark", "in {}", "in {}", "in {}"]
    expected = [*item, *item, *question, "mark", "out 0", "out 1", "out 2"]
    count = iter(range(9))
    expected = [name.format(next(count)) if "{}" in name else name for name in expected]
    assert name_steps(recall, 6) == expected


@pytest.mark.parametrize(("pattern", "lengths"), PATTERNS_LEARNED)
def test_the_loss_of_the_other_patterns_falls_too(pattern, lengths, tmp_path):
    """From the ln 2 of guessing, in a few steps of the smallest episodes."""
    recipe = RECIPE.replace('kind = "bits"', f'kind = "bits"\npattern = "{pattern}"\n{lengths}')
    (tmp_path / "pattern.toml").write_text(recipe)
    run = regard.train(tmp_path / "pattern.toml", tmp_path / "run", {"training.steps": 80})
    assert run.evaluate()["loss"] < 0.67 < math.log(2)
    assert [look.kind for look in run.look("2")][:2] == ["episode", "memory"]
    with pytest.raises(ValueError, match=f"must be a length: episodes of {pattern} are made up"):
        run.look("01 10")
