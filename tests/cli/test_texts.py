"""Texts in, answers out: what all commands that take texts have in common."""

import json

import pytest
from click.testing import CliRunner

from regard import load
from regard.cli import main
from regard.tasks.translation import Translate

NUMBERS = """
seed = 1
[task]
kind = "translation"
[data]
generator = "numbers-de"
examples = 60
valid_examples = 5
[model]
name = "bahdanau"
embedding_size = 8
hidden_size = 8
attention_size = 8
readout_size = 8
[training]
feed = "sentences"
steps = 3
tokens = 64
[decoding]
longest = 6
"""
WORDS = """
seed = 1
[task]
kind = "language-model"
[data]
train = "train.txt"
[model]
name = "rnn"
hidden_size = 8
[training]
feed = "sentences"
steps = 3
tokens = 64
[decoding]
longest = 6
"""


@pytest.fixture(scope="module", autouse=True)
def data_beside_the_recipe():
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("REGARD_DATA", raising=False)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    (place / "train.txt").write_text("the cat sees a dog\na bird hears the old cat\n" * 9)
    for name, recipe in (("translator", NUMBERS), ("model", WORDS)):
        (place / f"{name}.toml").write_text(recipe)
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("REGARD_DATA", raising=False)  # the data stand beside the recipe
            done = typed("train", place / f"{name}.toml", "--out", place / name)
        assert done.exit_code == 0, done.output
    return place


@pytest.fixture
def translator(folder):
    return folder / "translator"


@pytest.fixture
def model(folder):
    return folder / "model"


def typed(*words, stdin=None):
    return CliRunner().invoke(main, [str(word) for word in words], input=stdin)


def said(*words, stdin=None) -> str:
    done = typed(*words, stdin=stdin)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*words) -> str:
    done = typed(*words)
    assert done.exit_code == 2, done.output
    assert len(done.output.strip().splitlines()) == 1, done.output
    return done.output


def test_an_empty_line_has_an_empty_answer_and_the_lines_stay_in_step(translator):
    lines = said("translate", translator, "--input", "-", stdin="one\n\ntwo\n").split("\n")
    alone = [said("translate", translator, text).rstrip("\n") for text in ("one", "two")]
    assert lines == [alone[0], "", alone[1], ""]


def test_blank_texts_are_translated_to_nothing_in_python_too(translator):
    answers = load(translator).translate(["one", "", "  ", "two"])
    assert [answer.output for answer in answers[1:3]] == ["", ""]
    assert answers[0].output and answers[3].output


def test_answers_come_in_the_order_asked_whatever_the_lengths(translator):
    texts = ["one hundred and twenty-one", "two", "three hundred and five thousand", "four"]
    asked = [
        json.loads(line)["input"]
        for line in said(
            "translate", translator, "--input", "-", "--json", stdin="\n".join(texts)
        ).splitlines()
    ]
    assert asked == texts


def test_many_texts_are_batched_by_a_budget_of_tokens(translator, monkeypatch):
    run = load(translator)
    sizes = []
    answer = Translate.answer
    monkeypatch.setattr("regard.tasks.answering.TOKENS", 12)
    monkeypatch.setattr(
        Translate,
        "answer",
        lambda self, ids, *rest: sizes.append(list(map(len, ids))) or answer(self, ids, *rest),
    )
    texts = ["one", "two", "one hundred and five", "three", "six thousand"]
    together = run.translate(texts)
    assert sizes == [[1, 1, 1, 2], [4]]  # (length + 1) × texts is 12 at most, short ones first
    assert [a.output for a in together] == [run.translate(text)[0].output for text in texts]


def test_a_temperature_alone_samples(model):
    greedy = said("generate", model, "the")
    drawn = {said("generate", model, "the", "--temperature", "3", "--seed", seed) for seed in "123"}
    assert drawn != {greedy}


def test_three_answers_are_printed_when_three_are_asked_for(translator, model):
    assert len(said("translate", translator, "one", "--n-best", "3").splitlines()) == 3
    drawn = said("generate", model, "the", "--temperature", "2", "--n-best", "3")
    assert drawn.count("the") >= 3
    assert drawn.count("\n\n") == 2
    found = json.loads(said("translate", translator, "one", "--n-best", "3", "--json"))
    assert len(found["hypotheses"]) == 3
    assert found["hypotheses"][0] == {"output": found["output"], "score": found["score"]}


def test_a_sample_follows_from_the_number_of_its_line_alone(model):
    words = ("--input", "-", "--temperature", "2", "--seed", "5")
    whole = said("generate", model, *words, stdin="the\na\n\nthe cat\n").splitlines()
    assert whole[2] == ""
    other = said(
        "generate", model, *words, stdin="the old cat sees\na\nthe\nthe cat\n"
    ).splitlines()
    assert (other[1], other[3]) == (whole[1], whole[3])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("a", "the", "--stream"), "2 prompts"),
        (("the", "--stream", "--json"), "--json"),
        (("the", "--stream", "--beam", "3"), "method (beam) cannot be streamed"),
        (("the", "--stream", "--temperature", "1", "--n-best", "2"), "n_best (2)"),
        (("the", "--stream", "--look", "look.html"), "--look"),
        (("--stream", "--input", "-"), "--input"),
        (("the", "--method", "greedy", "--temperature", "0.7"), "means nothing to method greedy"),
        (("the", "--temperature", "0.7", "--beam", "2"), "choose one"),
        (("the", "a", "--look", "look.html"), "--look look.html draws one text; 2 texts"),
        (("the", "--look", "look.gif"), "look.gif"),
        (("the", "--input", "-"), "one of them is enough"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words, message, model):
    assert message in refused("generate", model, *words)


def test_matrices_can_be_rounded_to_8_bits_from_the_command_line(folder):
    place = folder / "wide"
    wide = WORDS.replace('name = "rnn"', 'name = "gpt2"\nlayers = 1\nheads = 2')
    (folder / "wide.toml").write_text(wide.replace("hidden_size = 8", "model_size = 128"))
    assert typed("train", folder / "wide.toml", "--out", place).exit_code == 0
    asked = ("generate", place, "the cat sees", "--longest", "1", "--json")
    exact = json.loads(said(*asked))["score"]
    rounded = json.loads(said(*asked, "--weights", "int8"))["score"]
    assert rounded != exact
    assert rounded == pytest.approx(exact, abs=0.02)
    assert json.loads(said(*asked, "--weights", "float32"))["score"] == exact
    assert "'int4' is not one of" in refused("generate", place, "the", "--weights", "int4")


def test_nothing_to_translate_is_said(translator):
    assert "nothing to translate" in refused("translate", translator)


def test_a_wrong_setting_in_python_gets_the_nearest_name(model):
    with pytest.raises(ValueError, match=r"'temprature'; did you mean 'temperature'\?"):
        load(model).generate("the", temprature=0.7)


def test_the_look_of_a_translation_is_that_of_the_answer_printed(translator, tmp_path):
    place = tmp_path / "look.svg"
    answer = said("translate", translator, "twenty-one", "--look", place, "--beam", "2").strip()
    assert "twenty" in place.read_text()
    run = load(translator)
    (best,) = run.translate("twenty-one", beam=2)
    assert best.output == answer
    (look,) = run.look_at(best)
    assert [label.text for label in look.keys] == ["twenty", "one"]
    said_words = [label.text for label in look.queries]
    ended = ["</s>"] * (len(said_words) - len(best.text.split()))  # not if cut short
    assert said_words == [*best.text.split(), *ended]
