"""A run is scored on a text as it was trained: every word once, from what it may see."""

import json
import math
from itertools import pairwise

import pytest
import torch
from click.testing import CliRunner
from torch.nn import functional as F

from regard.cli import main
from regard.running import load
from regard.training.train import train

MODELS = {
    "rnn": 'model={name="rnn", hidden_size=11}',
    "window": 'model={name="window", order=4, embedding_size=5, hidden_size=7}',
    "attentive": 'model={name="attentive-rnn", hidden_size=12, window=4}',
    "transformer": 'model={name="gpt2", layers=2, heads=2, model_size=12, longest=16}',
}
CASES = [
    *((model, feed) for model in MODELS for feed in ("columns", "windows", "sentences")),
    ("transformer", "packed"),
]
CASES_OF_SENTENCES = [case for case in CASES if case[1] in ("sentences", "packed")]


def trained(written, tmp_path, model, feed, *settings):
    """A run whose validation text takes several batches."""
    chosen = [MODELS[model], f"training.feed={feed}", "training.length=11", "training.steps=8"]
    chosen += ["training.tokens=24", "evaluation.batch=2"]
    return train(str(written("lstm")), tmp_path / "run", [*chosen, *settings])[0]


def valid_lines(tmp_path):
    return (tmp_path / "valid.txt").read_text().splitlines()


def by_torch(run, ids):
    """−Σ ln p of ids after the first, all of them read at once."""
    logits = run.logits(torch.tensor([ids[:-1]]))[0]
    return float(F.cross_entropy(logits, torch.tensor(ids[1:]), reduction="sum"))


def enclosed(run, line):
    return [run.tokenizer.end, *run.tokenizer.encode(line).ids, run.tokenizer.end]


@pytest.mark.parametrize(("model", "feed"), CASES)
def test_a_run_scores_what_it_scored_while_it_was_trained(model, feed, written, tmp_path):
    folder = trained(written, tmp_path, model, feed)
    lines = [json.loads(line) for line in (folder / "record.jsonl").read_text().splitlines()]
    best = lines[-1]["best_step"]
    (seen,) = [line for line in lines if line["event"] == "valid" and line["step"] == best]
    values = load(folder).evaluate(examples=valid_lines(tmp_path))
    assert values["loss"] == pytest.approx(seen["loss"], rel=1e-6)
    words = sum(len(line.split()) + 1 for line in valid_lines(tmp_path))
    assert values["tokens"] == seen["tokens"] == words


@pytest.mark.parametrize(("model", "feed"), CASES_OF_SENTENCES)
def test_a_sentence_is_scored_from_its_own_words_alone(model, feed, written, tmp_path):
    run = load(trained(written, tmp_path, model, feed))
    lines = valid_lines(tmp_path)
    values = run.evaluate(examples=lines)
    expected = sum(by_torch(run, enclosed(run, line)) for line in lines)
    assert values["loss"] * values["tokens"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("model", ["rnn", "window", "attentive"])
@pytest.mark.parametrize("feed", ["columns", "windows"])
def test_what_carries_its_state_reads_a_text_from_beginning_to_end(model, feed, written, tmp_path):
    run = load(trained(written, tmp_path, model, feed, "evaluation.batch=1"))
    lines = valid_lines(tmp_path)
    ids = [run.tokenizer.end]
    for line in lines:
        ids += enclosed(run, line)[1:]
    values = run.evaluate(examples=lines)
    assert values["loss"] * values["tokens"] == pytest.approx(by_torch(run, ids), rel=1e-5)


def test_a_sentence_longer_than_a_packed_row_is_scored_in_pieces_of_a_row(written, tmp_path):
    run = load(trained(written, tmp_path, "transformer", "packed"))
    long = (
        "the cat sees a dog and hears the bird near the old dog and the small cat far far and near"
    )
    values = run.evaluate(examples=["a dog", long, "the cat"])
    ids = enclosed(run, long)  # 23 of them, so 22 targets, 11 in a row
    pieces = [ids[:12], ids[11:]]
    expected = sum(by_torch(run, piece) for piece in pieces)
    expected += sum(by_torch(run, enclosed(run, line)) for line in ("a dog", "the cat"))
    assert values["tokens"] == 3 + 22 + 3
    assert values["loss"] * values["tokens"] == pytest.approx(expected, rel=1e-5)


def test_evaluating_leaves_a_run_as_it_was(written, tmp_path):
    run = load(trained(written, tmp_path, "transformer", "windows"))
    ids = torch.tensor([[0, 1, 2, 3]])
    before = run.logits(ids)
    first = run.evaluate(examples=valid_lines(tmp_path))
    assert not run.model.training
    assert torch.equal(run.logits(ids), before)  # with dropout it would be another each time
    again = run.evaluate(examples=valid_lines(tmp_path))
    for name in ("loss", "on_last_five"):
        assert again[name] == first[name]


# Scores that are no probabilities


@pytest.fixture
def backing_off(written, tmp_path):
    settings = ['model={name="ngram", order=2, smoothing="stupid-backoff"}']
    return train(str(written("lstm")), tmp_path / "run", settings)[0]


def test_stupid_backoff_has_a_score_and_no_perplexity(backing_off):
    run = load(backing_off)
    values = run.evaluate(examples=["the cat", "the bird"])
    assert not values.keys() & {"loss", "perplexity", "bits"}
    bigrams = text_bigrams(backing_off.parent / "train.txt")
    pairs = [("</s>", "the"), ("the", "cat"), ("cat", "</s>")]
    pairs += [("</s>", "the"), ("the", "bird"), ("bird", "</s>")]
    expected = sum(math.log(bigrams[a][b] / sum(bigrams[a].values())) for a, b in pairs) / 6
    assert values["score"] == pytest.approx(expected)
    assert values["signature"].startswith(f"score {expected:.4g} | ")
    with pytest.raises(ValueError, match="has none; its metrics are score"):
        run.perplexity("the cat")


def test_the_command_tells_a_score_as_well(backing_off):
    done = CliRunner().invoke(main, ["evaluate", str(backing_off), "--json"])
    assert done.exit_code == 0, done.output
    values = json.loads(done.output)
    assert values.keys() == {"score", "tokens", "seconds", "signature"}


def text_bigrams(path):
    counts = {}
    for line in path.read_text().splitlines():
        words = ["</s>", *line.split(), "</s>"]
        for before, word in pairwise(words):
            counts.setdefault(before, {}).setdefault(word, 0)
            counts[before][word] += 1
    return counts


def test_stupid_backoff_is_recorded_as_a_score(backing_off):
    lines = [json.loads(line) for line in (backing_off / "record.jsonl").read_text().splitlines()]
    (valid,) = [line for line in lines if line["event"] == "valid"]
    assert "score" in valid
    assert not valid.keys() & {"loss", "perplexity", "bits"}


# Lines


def test_lines_without_an_end_are_refused_in_one_line(written, tmp_path):
    settings = ['text.specials=["<unk>"]']
    wanted = r"^data\.unit \('line'\) needs .* role 'end' .*data\.unit = 'character'[^\n]*$"
    with pytest.raises(ValueError, match=wanted):
        train(str(written("lstm")), tmp_path / "run", settings)
    assert not (tmp_path / "run").exists()


def test_a_text_as_it_stands_keeps_its_line_ends(written, tmp_path):
    settings = ["data.unit=character", "text.kind=character", "training.steps=2"]
    run = load(train(str(written("lstm")), tmp_path / "run", settings)[0])
    text = (tmp_path / "valid.txt").read_text()
    assert run.tokenizer.id_of("\n") is not None
    assert run.evaluate(examples=[text])["tokens"] == len(text) - 1
