"""Runs that learn from what other runs answer."""

import json
import shutil

import pytest

import regard
from regard.checkpoints.reading import read_tensors
from regard.training import teaching
from regard.training.placement import Placement
from regard.training.preparing import prepare
from regard.training.recipe import read_recipe
from regard.training.train import train

PAIRS = [("one cat", "eine katze"), ("two dogs", "zwei hunde"), ("one dog", "ein hund")] * 5
RECIPE = """seed = 1
[task]
kind = "translation"
[data]
train = ["train.en", "train.de"]
valid = ["train.en", "train.de"]
{data}
[text]
kind = "word"
[model]
name = "bahdanau"
embedding_size = 8
hidden_size = 12
attention_size = 8
[training]
steps = 2
tokens = 64
save_every = 1
keep = 2
[evaluation]
select = "loss"
"""


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    """Writes a recipe with some more lines in [data], and gives its path."""
    monkeypatch.chdir(tmp_path)
    for side, name in enumerate(("train.en", "train.de")):
        lines = "".join(f"{pair[side]}\n" for pair in PAIRS)
        (tmp_path / name).write_text(lines, encoding="utf-8")

    def write(data: str = ""):
        path = tmp_path / "pupil.toml"
        path.write_text(RECIPE.format(data=data), encoding="utf-8")
        return path

    return write


@pytest.fixture
def teacher(recipe, tmp_path):
    return regard.train(recipe(), tmp_path / "teacher")


def taught_by(tmp_path, *names):
    return f"taught_by = {json.dumps([str(tmp_path / name) for name in names])}"


def test_what_teachers_say_is_learned_from_beside_the_data(teacher, recipe, tmp_path):
    path = recipe(taught_by(tmp_path, "teacher", "teacher"))
    regard.train(path, tmp_path / "run")
    sources = [source for source, _ in PAIRS]
    said = [each.output for each in teacher.translate(sources)]
    held = [json.loads(x) for x in (tmp_path / "run" / "taught.jsonl").read_text().splitlines()]
    assert [each["answer"] for each in held] == said * 2
    assert {each["teacher"] for each in held} == {str(tmp_path / "teacher")}
    work = prepare(read_recipe(str(path)), answers=said * 2)
    words = work.resources.words
    pairs = [*PAIRS, *zip(sources * 2, said * 2, strict=True)]
    assert [list(map(list, pair)) for pair in work.train.pairs] == [
        [words.encode(text).ids for text in pair] for pair in pairs
    ]


def test_answers_change_what_is_learned(teacher, recipe, tmp_path):
    alone = regard.train(recipe(), tmp_path / "alone")
    taught = regard.train(recipe(taught_by(tmp_path, "teacher")), tmp_path / "taught")
    assert alone.evaluate()["loss"] != taught.evaluate()["loss"]


def test_a_taught_run_is_resumed_without_its_teacher_to_the_same_bits(teacher, recipe, tmp_path):
    path = recipe(taught_by(tmp_path, "teacher"))
    train(str(path), tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "half")
    for name in ("manifest.json", "model.safetensors"):
        (tmp_path / "half" / name).unlink()
    shutil.rmtree(tmp_path / "half" / "checkpoints" / "step-00000002")
    shutil.rmtree(tmp_path / "teacher")
    assert train(str(tmp_path / "half" / "recipe.toml"), tmp_path / "half", resume=True)[1]
    one, other = (read_tensors(tmp_path / n / "model.safetensors") for n in ("whole", "half"))
    assert all((one[name] == other[name]).all() for name in one)


def test_a_run_that_begins_anew_asks_anew(teacher, recipe, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "taught.jsonl").write_text('{"teacher": "?", "answer": "old"}\n')
    regard.train(recipe(taught_by(tmp_path, "teacher")), tmp_path / "run")
    assert "old" not in (tmp_path / "run" / "taught.jsonl").read_text()


def test_an_answer_may_hold_whatever_a_text_may(teacher, recipe, tmp_path, monkeypatch):
    odd = ["", "a\u2028b", "c\x85d", "e\nf"] * 4
    monkeypatch.setattr(teaching, "ask", lambda name, questions, verb: odd[: len(questions)])
    settings = read_recipe(str(recipe(taught_by(tmp_path, "teacher"))))
    placement = Placement.from_environment()
    found = teaching.ask_teachers(settings, tmp_path / "run", placement, False, lambda *_: None)
    assert found == odd[: len(PAIRS)]


def test_answers_to_other_data_are_refused(recipe):
    with pytest.raises(ValueError, match=r"16 answers are not those of whole teachers to 15 sour"):
        prepare(read_recipe(str(recipe())), answers=["hund"] * 16)


def test_a_teacher_must_be_there_and_able(recipe, written, tmp_path):
    with pytest.raises(ValueError, match="must be the folder of a finished run, or one's name in"):
        regard.train(recipe(taught_by(tmp_path, "nowhere")), tmp_path / "run")
    regard.train(written("lstm"), tmp_path / "writer", {"training.steps": 1})
    with pytest.raises(ValueError, match="is a run of language-model, which does not translate"):
        regard.train(recipe(taught_by(tmp_path, "writer")), tmp_path / "run")


def test_a_task_that_learns_from_data_alone_says_so(written, tmp_path):
    with pytest.raises(ValueError, match=r"data.taught_by \(.*me\) is nothing for language-model"):
        regard.train(written("lstm"), tmp_path / "run", {"data.taught_by": ["me"]})
