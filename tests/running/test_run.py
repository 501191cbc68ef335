"""A run in Python does what the commands do."""

import json
import signal

import pytest
import torch

import regard
from regard.running import Candidate, Stopped
from regard.tasks.translation import Translate

NUMBERS = {
    "data.examples": 40,
    "data.valid_examples": 20,
    "data.test_examples": 10,
    "training.steps": 4,
    "training.evaluate_every": 2,
    "model.hidden_size": 8,
    "model.attention_size": 8,
}


def test_training_gives_the_run_and_saves_where_it_looked(written, tmp_path):
    settings = {"training.probes": ["the cat", "a dog"]}
    run = regard.train(written("transformer"), tmp_path / "run", settings)
    assert run.folder == tmp_path / "run"
    saved = sorted(path.name for path in (run.folder / "probes").glob("*.json"))
    assert saved == [f"step-{s:08d}-{n}.json" for s in (5, 10, 12) for n in (0, 1)]


def test_a_probe_may_name_what_a_translator_is_made_to_say(tmp_path):
    settings = {**NUMBERS, "training.probes": [["forty-two", "zwei und vierzig"]]}
    run = regard.train("numbers-de", tmp_path / "run", settings)
    look = json.loads((run.folder / "probes" / "step-00000004-0.json").read_text())
    (first,) = look["looks"]
    queries = [label["text"] if isinstance(label, dict) else label for label in first["queries"]]
    assert queries == ["zwei", "und", "vierzig", "</s>"]


def test_settings_may_be_a_mapping_or_strings_and_not_one_string(written, tmp_path):
    path = written("lstm")
    one = regard.train(path, tmp_path / "one", {"training.steps": 2, "seed": 3})
    two = regard.train(path, tmp_path / "two", ["training.steps=2", "seed=3"])
    assert one.recipe == two.recipe
    with pytest.raises(ValueError, match=r"settings \('seed=3'\) must be a mapping"):
        regard.train(path, tmp_path / "three", "seed=3")


def test_a_signal_stops_and_saves_and_the_run_goes_on(written, tmp_path):
    path = written("lstm")

    def report(event, values):
        if event == "step" and values["step"] == 5:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Stopped, match="go on with: regard train") as stopped:
        regard.train(path, tmp_path / "run", report=report)
    assert stopped.value.folder == tmp_path / "run"
    ended = regard.train(path, tmp_path / "run", resume=True)
    whole = regard.train(path, tmp_path / "whole")
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(ended.model.state_dict()[name], weight)


def test_evaluate_needs_no_argument_and_takes_a_split_files_or_examples(written, tmp_path):
    run = regard.train(written("lstm"), tmp_path / "run")
    lines = (tmp_path / "valid.txt").read_text().splitlines()
    whole = run.evaluate()
    for values in (
        run.evaluate("valid"),
        run.evaluate(files=tmp_path / "valid.txt"),
        run.evaluate(files=[str(tmp_path / "valid.txt")]),
        run.evaluate(examples=lines),
    ):
        assert values["loss"] == whole["loss"]
    with pytest.raises(ValueError, match=r"there is no data\.test to evaluate on"):
        run.evaluate("test")
    with pytest.raises(ValueError, match=r"split \('vaild'\) is not known; did you mean 'valid'"):
        run.evaluate("vaild")


def test_data_test_is_a_split_of_its_own(written, tmp_path):
    (tmp_path / "test.txt").write_text("a cat sees the dog\n")
    settings = {"data.test": str(tmp_path / "test.txt"), "training.steps": 2}
    run = regard.train(written("lstm"), tmp_path / "run", settings)
    values = run.evaluate("test")
    assert values["tokens"] == 6
    assert "data:test" in values["signature"]


def test_a_translator_is_scored_by_its_answers(tmp_path):
    run = regard.train("numbers-de", tmp_path / "run", NUMBERS)
    values = run.evaluate("test")
    # No BLEU: a German number is one word, and of four in a row there are none.
    names = {"exact_match", "chrf", "loss", "aer", "tokens", "seconds", "signature"}
    assert values.keys() == names
    assert values["signature"] == (
        f"exact_match {values['exact_match']:.4g} | recipe:numbers-de | data:test | "
        "decode:greedy | seed:1"
    )
    pairs = run.task.read("test")
    said = [answer.output for answer in run.translate([source for source, _ in pairs])]
    right = [
        run.task.join(target, source) == each
        for (source, target), each in zip(pairs, said, strict=True)
    ]
    assert values["exact_match"] == sum(right) / 10
    again = run.evaluate(examples=pairs)
    assert again["chrf"] == values["chrf"]


def test_numbers_of_several_words_have_a_bleu(tmp_path):
    run = regard.train("numbers-all", tmp_path / "run", NUMBERS)
    assert "bleu" in run.evaluate("test")


def test_right_answers_are_compared_as_people_write_them(tmp_path, monkeypatch):
    run = regard.train("numbers-de", tmp_path / "run", NUMBERS)
    right = {
        tuple(run.tokenizer.encode(source).ids): "".join(target.split())
        for source, target in run.task.read("test")
    }

    def answer(self, encoded, numbers):
        return [[Candidate(right[tuple(ids)], 0.0)] for ids in encoded]

    monkeypatch.setattr(Translate, "answer", answer)
    values = run.evaluate("test")
    # A German number is one word: zweihundertfünf, but for millions, which stand apart.
    assert values["exact_match"] >= 0.5
    assert values["chrf"] > 95


def test_a_translator_can_be_selected_by_bleu(tmp_path):
    settings = {**NUMBERS, "evaluation.select": "bleu"}
    run = regard.train("numbers-de", tmp_path / "run", settings)
    lines = [json.loads(line) for line in (run.folder / "record.jsonl").read_text().splitlines()]
    valid = [line for line in lines if line["event"] == "valid"]
    assert all("bleu" in line for line in valid)
    assert lines[-1]["best_step"] == max(valid, key=lambda line: line["bleu"])["step"]


def test_a_target_is_refused_where_one_text_is_read(written, tmp_path):
    run = regard.train(written("transformer"), tmp_path / "run", {"training.steps": 1})
    with pytest.raises(ValueError, match=r"target \('a dog'\): a language model reads one text"):
        run.look("the cat", "a dog")
