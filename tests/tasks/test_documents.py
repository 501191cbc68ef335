"""A classifier that reads sentence by sentence: from files to a run that answers."""

import json
from itertools import chain

import pytest
from click.testing import CliRunner

import regard
from regard.cli import main
from regard.looking import Looks
from regard.tasks.reading import MAX_SENTENCE_WORDS, cut_sentence

REVIEWS = """
seed = 1
[task]
kind = "classification"
[data]
train = "train.tsv"
test = "train.tsv"
format = "tsv"
columns = [1, 0]
valid_share = 0.25
[text]
lowercase = true
split_punctuation = true
[model]
name = "han"
embedding_size = 8
hidden_size = 6
attention_size = 5
word_dropout = 0.1
[training]
steps = 60
tokens = 80
rate = 0.03
log_every = 30
"""
TEXT = "It is  long, really. Mr. X is GREAT!<br /><br />I slept (a lot) in the cinéma"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    place = tmp_path_factory.mktemp("reviews")
    lines = []
    for number in range(80):
        label, word = (("good", "great"), ("bad", "dull"))[number % 2]
        before = "It is long. " * (number % 4)
        lines.append(f"{label}\t{before}The film is {word}, really! I slept.\n")
    (place / "train.tsv").write_text("".join(lines))
    (place / "reviews.toml").write_text(REVIEWS)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("REGARD_DATA", raising=False)
        return regard.train(place / "reviews.toml", place / "run")


def typed(*words, stdin=None):
    done = CliRunner().invoke(main, [str(word) for word in words], input=stdin)
    return done.exit_code, done.output


def test_it_learns_answers_and_is_verified(run):
    assert run.evaluate("valid")["accuracy"] == 1
    answers = run.classify(["The film is great. It is long.", "It is DULL"])
    assert [answer.output for answer in answers] == ["good", "bad"]
    code, output = typed("verify", run.folder)
    assert code == 0, output
    assert "a batch of 3 = 3 batches of 1" in output


def test_a_batch_of_documents_answers_like_each_alone(run):
    texts = ["great", "The film. Is. Dull! " * 130, "", "<br />", "no stop " * 400, "great. dull."]
    together = run.classify(texts)
    for text, answer in zip(texts, together, strict=True):
        (alone,) = run.classify(text)
        assert alone.output == answer.output
        assert alone.score == pytest.approx(answer.score, abs=1e-6)
    assert [answer.output == "" for answer in together] == [False, False, True, True, False, False]


def test_a_look_has_sentences_and_inside_each_its_words_as_the_raw_text_has_them(run):
    (look,) = run.look(TEXT)
    assert (look.path, look.kind, look.key_text) == ("sentences.attention", "pool", TEXT)
    cut = [TEXT[label.start : label.end] for label in look.keys]
    assert cut == ["It is  long, really.", "Mr. X is GREAT!", "I slept (a lot) in the cinéma"]
    assert float(look.weights.sum()) == pytest.approx(1)
    words = [[TEXT[label.start : label.end] for label in each.keys] for each in look.inner]
    assert words[0] == ["It", "is", "long", ",", "really", "."]
    assert words[1] == ["Mr", ".", "X", "is", "GREAT", "!"]
    assert words[2][-3:] == ["in", "the", "cinéma"]
    for each in look.inner:
        assert (each.path, each.kind) == ("words.attention", "pool")
        assert float(each.weights.sum()) == pytest.approx(1)


def test_each_sentence_s_words_are_weighed_as_if_it_stood_alone(run):
    # The word level knows nothing of other sentences, so a row mixed up with another would show.
    (look,) = run.look(TEXT)
    for sentence, inner in zip(look.keys, look.inner, strict=True):
        (alone,) = run.look(sentence.text)
        assert inner.weights[0, 0].tolist() == pytest.approx(alone.inner[0].weights[0, 0].tolist())


def test_a_sentence_without_end_goes_on_as_the_next(run):
    parts = cut_sentence(list(range(2 * MAX_SENTENCE_WORDS + 1)))
    assert [len(part) for part in parts] == [67, 67, 67]
    assert list(chain.from_iterable(parts)) == list(range(2 * MAX_SENTENCE_WORDS + 1))
    assert cut_sentence([]) == []
    (look,) = run.look("so long " * 110)
    assert [len(inner.keys) for inner in look.inner] == [73, 73, 74]
    assert [label.start for label in look.keys] == [0, 291, 584]


def test_the_command_looks_at_a_text_a_file_and_standard_input(run, tmp_path):
    file = tmp_path / "review.txt"
    file.write_text(TEXT + "\n")
    saved = {}
    for name, words in {
        "typed": (TEXT,),
        "file": (file,),
        "input": ("--input", file),
        "stdin": ("--input", "-"),
    }.items():
        out = tmp_path / f"{name}.json"
        code, output = typed("look", run.folder, *words, "--out", out, stdin=TEXT + "\n")
        assert code == 0, output
        assert output.splitlines()[-1] == "2 attentions over 21 tokens"
        saved[name] = Looks.load(out)[0]
    assert all(look == saved["typed"] for look in saved.values())
    assert saved["typed"].inner[1].keys[4].text == "great"
    code, output = typed("classify", run.folder, TEXT, "--look", tmp_path / "x.html")
    assert code == 0
    assert (tmp_path / "x.html").read_text().count('<section class="look">') == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "nothing to look at: give a text, or --input FILE"),
        (("a", "--input", "b"), "--input b and a text were given; one of them is enough"),
        (("--input", "missing.txt"), "missing.txt: there is no such file"),
        (("<br />",), "text ('<br />') has no tokens to look at"),
        (("a", "--target", "b"), "target ('b'): this classifier reads one text"),
    ],
)
def test_what_cannot_be_looked_at_is_said_in_one_line(run, words, message):
    code, output = typed("look", run.folder, *words)
    assert code == 2
    assert output.splitlines() == [f"regard: {message}"]


def test_an_averaging_model_has_nothing_to_look_at(run, tmp_path, monkeypatch):
    monkeypatch.delenv("REGARD_DATA", raising=False)
    recipe = run.folder.parent / "reviews.toml"
    averaging = regard.train(recipe, tmp_path / "run", settings=["model.pooling=average"])
    assert averaging.evaluate("valid")["accuracy"] > 0.9
    with pytest.raises(ValueError, match="han has no attention to look at"):
        averaging.look("great")


def test_a_label_never_seen_is_one_clear_line(run, tmp_path):
    (tmp_path / "other.tsv").write_text("god\tThe film is great.\n")
    code, output = typed("evaluate", run.folder, "--data", tmp_path / "other.tsv")
    assert code == 2
    (line,) = output.splitlines()
    assert "label ('god') is not known; did you mean 'good'" in line
    assert json.loads((run.folder / "labels.json").read_text()) == ["bad", "good"]
