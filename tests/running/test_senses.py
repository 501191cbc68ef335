"""The senses of a word: listed, scaled and exchanged, from Python and from the shell."""

import json
import math

import pytest
import torch
from click.testing import CliRunner
from torch.testing import assert_close

import regard
from regard.cli import main


@pytest.fixture
def run(written, tmp_path):
    made = regard.train(written("backpack"), tmp_path / "run", {"training.steps": 2})
    with torch.no_grad():  # senses that say something
        made.model.senses.output.contract.weight.normal_(generator=torch.Generator().manual_seed(1))
    return made


def typed(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(main, [str(word) for word in words])
    return done.exit_code, done.output


def test_each_sense_names_the_words_whose_logits_it_moves_most(run):
    found = run.senses("cat", top=2)
    assert [sense.number for sense in found] == [0, 1, 2]
    cat = run.tokenizer.id_of("cat")
    table = run.model.embedding.weight.detach()
    vectors = run.model.senses(torch.tensor([cat]))[0].detach()
    for sense, vector in zip(found, vectors, strict=True):
        tokens = run.tokenizer.tokens_of(range(run.tokenizer.size))
        logits = {token: float(table[n] @ vector) for n, token in enumerate(tokens)}
        ranked = sorted(logits, key=logits.__getitem__)
        assert [word for word, _ in sense.raises] == ranked[:-3:-1]
        assert [word for word, _ in sense.lowers] == ranked[:2]
        assert_close(
            torch.tensor([logit for _, logit in sense.raises]),
            torch.tensor([logits[word] for word in ranked[:-3:-1]]),
            atol=1e-5,
            rtol=1e-5,
        )


def test_changed_senses_change_the_answer_and_nothing_remains(run):
    before = run.generate("the cat", method="greedy", longest=4)[0]
    silent = {"the": dict.fromkeys(range(3), 0.0), "cat": dict.fromkeys(range(3), 0.0)}
    other = run.generate("the cat", method="greedy", longest=1, senses=silent)[0]
    # Without any sense every word is as likely: −log of the vocabulary is the score.
    assert other.score == pytest.approx(-math.log(run.tokenizer.size), abs=1e-5)
    again = run.generate("the cat", method="greedy", longest=4)[0]
    assert (again.output, again.score) == (before.output, before.score)


def test_a_word_with_all_senses_of_another_is_read_by_them(run):
    own = {"cat": {n: ("dog", n) for n in range(3)}}
    changed = run.generate("cat", method="greedy", longest=1, senses=own)[0]
    expected = run.generate("dog", method="greedy", longest=1)[0]
    # Of one word alone every sense has weight 1, whatever the word.
    assert changed.output == expected.output
    assert changed.score == pytest.approx(expected.score, abs=1e-5)


def test_a_look_at_an_answer_is_decoded_with_its_senses(run):
    settings = {"method": "greedy", "longest": 3, "senses": {"cat": {0: 5.0, 2: ("dog", 1)}}}
    answer = run.generate("the cat", **settings)[0]
    *_, look = run.look_at(answer)
    assert look.kind == "senses"
    assert look.heads == ("sense 0", "sense 1", "sense 2")


def test_the_shell_lists_senses(run):
    code, output = typed("senses", run.folder, "cat", "--top", 2)
    assert code == 0
    lines = output.splitlines()
    assert len(lines) == 6
    assert [line[:11] for line in lines[:2]] == ["sense 0   +", "          -"]
    found = json.loads(typed("senses", run.folder, "cat", "--json", "--top", 2)[1])
    assert found["input"] == "cat"
    assert [list(each) for each in found["output"]] == [["sense", "raises", "lowers"]] * 3
    assert list(found["output"][0]["raises"][0]) == ["word", "logit"]


def test_the_shell_changes_senses_before_it_generates(run):
    asked = ("generate", run.folder, "cat", "--method", "greedy", "--longest", 1, "--json")
    changes = [word for n in range(3) for word in ("--sense", f"cat:{n}=dog:{n}")]
    code, output = typed(*asked, *changes)
    assert code == 0
    in_python = {"cat": {n: ("dog", n) for n in range(3)}}
    stored = regard.load(run.folder).generate("cat", method="greedy", longest=1, senses=in_python)
    assert json.loads(output)["score"] == pytest.approx(stored[0].score, abs=1e-6)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("senses", "{run}", "cats"), r"word ('cats') is not among the 14 this model knows; "),
        (("senses", "{run}", "cats"), "the nearest are cat"),
        (("senses", "{run}", "the cat"), "word ('the cat') is 2 tokens here"),
        (("senses", "{run}", ""), "word ('') is not among the 14"),
        (("senses", "{run}", "cat", "--top", "99"), "top (99) must be from 1 to 14"),
        (("senses", "{run}", "cat", "--top", "0"), "top (0) must be from 1 to 14"),
        (("generate", "{run}", "a", "--sense", "cat:9=0"), "sense (9) must be from 0 to 2"),
        (("generate", "{run}", "a", "--sense", "cat=0"), "must be WORD:NUMBER=FACTOR"),
        (("generate", "{run}", "a", "--sense", "cat:1"), "must be WORD:NUMBER=FACTOR"),
        (("generate", "{run}", "a", "--sense", "cat:1=dog"), "must be WORD:NUMBER=FACTOR"),
        (("generate", "{run}", "a", "--sense", "cat:1=nan"), "factor (nan) must be a finite"),
        (("generate", "{run}", "a", "--sense", "cot:1=0"), "word ('cot') is not among the 14"),
        (
            ("generate", "{run}", "a", "--sense", "cat:1=0", "--sense", "cat:1=2"),
            "sense 1 of 'cat' was given before",
        ),
    ],
)
def test_what_cannot_be_is_answered_in_one_line(run, words, message):
    code, output = typed(*(run.folder if word == "{run}" else word for word in words))
    assert code == 2
    assert len(output.splitlines()) == 1
    assert message in output


def test_a_special_token_is_no_word_and_is_not_offered_as_one(run):
    code, output = typed("senses", run.folder, "<unk>")
    assert code == 2 and "word ('<unk>') is not among the 14" in output
    assert "nearest" not in output or "<unk>" not in output.partition("nearest")[2]


def test_a_model_without_senses_says_so(written, tmp_path):
    made = regard.train(written("transformer"), tmp_path / "gpt", {"training.steps": 1})
    for words in (("senses", made.folder, "cat"), ("generate", made.folder, "--sense", "cat:0=0")):
        code, output = typed(*words)
        assert code == 2
        assert output.splitlines() == [
            "regard: GPT2 has no senses: only the words of a Backpack do (model.name = 'backpack')"
        ]
