"""Word links out of attention: from pieces to words, from weights to links, both ways."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from click.testing import CliRunner

import regard
from regard.attention import Label, Look
from regard.cli import main
from regard.looking import Looks
from regard.metrics import Links
from regard.running.aligning import align, links_of, word_weights

DATA = Path(__file__).parents[3] / "shared" / "data" / "word_alignment"


def typed(*words):
    done = CliRunner().invoke(main, [str(word) for word in words])
    return done.exit_code, done.output


def looking(*looks):
    """A run that looks as it is told."""
    return SimpleNamespace(look=lambda source, target: Looks(list(looks)))


def look(weights, path="decoder.attention", kind="cross"):
    """Target «ab c </s>» in the pieces a·b·c, source «x yz» in the pieces x·y·z."""
    return Look.of_weights(
        torch.tensor(weights),
        queries=[Label("a", 0, 1), Label("b", 1, 2), Label("c", 3, 4), Label("</s>")],
        keys=[Label("x", 0, 1), Label("y", 2, 3), Label("z", 3, 4)],
        path=path,
        kind=kind,
        query_text="ab c",
        key_text="x yz",
    )


WEIGHTS = [[0.6, 0.2, 0.2], [0.2, 0.4, 0.4], [0.1, 0.5, 0.4], [1.0, 0.0, 0.0]]


def test_pieces_of_a_source_word_add_up_and_those_of_a_target_word_are_averaged():
    found = word_weights(looking(look(WEIGHTS)), "x yz", "ab c")
    # (.6 + .2) / 2 and (.4 + .8) / 2; the end of the sentence is no word.
    expected = torch.tensor([[0.4, 0.6], [0.1, 0.9]])
    torch.testing.assert_close(found, expected)


def test_several_attentions_are_averaged_and_one_can_be_chosen():
    other = look([[1.0, 0.0, 0.0]] * 4, path="other")
    within = look(WEIGHTS, path="within", kind="self")
    run = looking(look(WEIGHTS), other, within)
    both = word_weights(run, "x yz", "ab c")
    torch.testing.assert_close(both, torch.tensor([[0.7, 0.3], [0.55, 0.45]]))
    one = word_weights(run, "x yz", "ab c", path="other")
    torch.testing.assert_close(one, torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    with pytest.raises(
        ValueError, match=r"path \('within'\) .*there are: decoder.attention, other"
    ):
        word_weights(run, "x yz", "ab c", path="within")


def test_links_are_the_strongest_or_all_that_are_strong():
    weights = torch.tensor([[0.4, 0.6], [0.1, 0.9]])
    assert str(links_of(weights)) == "1-0 1-1"
    assert str(links_of(weights, "threshold", 0.4)) == "0-0 1-0 1-1"
    assert str(links_of(torch.zeros(0, 3))) == ""


def test_a_threshold_asks_for_its_method():
    run, pair = looking(look(WEIGHTS)), [("x yz", "ab c")]  # .4 .6 and .1 .9
    assert str(align(run, pair)[0]) == "1-0 1-1"
    assert str(align(run, pair, threshold=0.4)[0]) == "0-0 1-0 1-1"
    assert str(align(run, pair, method="threshold")[0]) == "0-0 1-0 1-1"
    assert str(align(run, pair, method="threshold", threshold=0.7)[0]) == "1-1"


def test_two_directions_are_symmetrised():
    forward = looking(look(WEIGHTS))  # 1-0 1-1
    back = Look.of_weights(
        torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]),
        queries=[Label("x", 0, 1), Label("yz", 2, 4), Label("</s>")],
        keys=[Label("ab", 0, 2), Label("c", 3, 4)],
        kind="cross",
        query_text="x yz",
        key_text="ab c",
    )  # x → ab, yz → c: 0-0 1-1
    (links,) = align(forward, [("x yz", "ab c")], looking(back))
    # Both say 1-1. Beside it stands 1-0, which links ab; from there 0-0 links x.
    assert str(links) == "0-0 1-0 1-1"
    turned = align(looking(back), [("ab c", "x yz")], forward)
    assert str(turned[0]) == "0-0 0-1 1-1"


def test_empty_lines_have_no_links():
    links = align(looking(look(WEIGHTS)), [("", "ab"), ("x", " ")])
    assert [str(each) for each in links] == ["", ""]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "mean"}, r"method \('mean'\) must be one of argmax, threshold"),
        ({"threshold": 0.0}, r"threshold \(0.0\) must be above 0"),
        ({"method": "argmax", "threshold": 0.5}, r"threshold \(0.5\) says nothing to .*'argmax'"),
        ({"gold": [Links()]}, "gold has 1 lines and there are 0 pairs"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        align(looking(look(WEIGHTS)), [], **settings)


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    small = {"data.examples": 40, "data.valid_examples": 4, "data.test_examples": 6}
    small |= {"training.steps": 2, "model.hidden_size": 8, "model.attention_size": 8}
    return regard.train("numbers-de", tmp_path_factory.mktemp("runs") / "run", small).folder


def test_the_command_aligns_generated_numbers_with_their_gold(translator, tmp_path):
    code, output = typed("align", translator, "--out", tmp_path / "links.txt", "--json")
    assert code == 0, output
    values = json.loads(output)
    lines = (tmp_path / "links.txt").read_text().splitlines()
    assert len(lines) == 6
    assert sum(len(line.split()) for line in lines) == values["links"]
    assert 0 < values["aer"] <= 1
    # Its own output as gold leaves no error.
    code, output = typed(
        *("align", translator, "--gold", tmp_path / "links.txt", "--json"),
        *("--out", tmp_path / "again.txt"),
    )
    assert json.loads(output)["aer"] == 0


def test_the_command_aligns_two_files(translator, tmp_path):
    (tmp_path / "en").write_text("forty-two\n\nnine\n")
    (tmp_path / "de").write_text("zwei und vierzig\n\nneun\n")
    files = ("--source", tmp_path / "en", "--target", tmp_path / "de")
    code, output = typed("align", translator, *files)
    first, second, third = output.splitlines()
    assert code == 0
    assert sorted(link.split("-")[1] for link in first.split()) == ["0", "1", "2"]
    assert (second, third) == ("", "0-0")


def test_gold_that_links_a_word_which_is_not_there_is_refused(translator, tmp_path):
    for name, text in {"en": "nine\nten\n", "de": "neun\nzehn\n", "gold": "0-0\n0-3\n"}.items():
        (tmp_path / name).write_text(text)
    files = ("--source", tmp_path / "en", "--target", tmp_path / "de", "--gold", tmp_path / "gold")
    code, output = typed("align", translator, *files)
    assert code == 2
    said = "gold line 2 links 0-3, but its source has 1 words and its target 1, counted from 0"
    assert said in output.splitlines()[-1]


def test_gold_of_other_pairs_is_refused_before_a_link_is_printed(translator, tmp_path):
    for name, text in {"en": "nine\nten\n", "de": "neun\nzehn\n", "gold": "0-0\n"}.items():
        (tmp_path / name).write_text(text)
    files = ("--source", tmp_path / "en", "--target", tmp_path / "de", "--gold", tmp_path / "gold")
    code, output = typed("align", translator, *files)
    assert code == 2
    said = "gold has 1 lines and there are 2 pairs: line n of gold is about pair n"
    assert output == f"regard: {said}\n"
    # Links that nothing is compared with are no scores to print as JSON.
    code, output = typed("align", translator, *files[:4], "--json")
    assert code == 2 and "--json prints how well links agree with --gold" in output


def test_gold_that_may_count_from_one_is_asked_about(tmp_path):
    (tmp_path / "links").write_text("0-0 1-1\n")
    (tmp_path / "gold").write_text("1-1 2-2\n")
    files = ("--links", tmp_path / "links", "--gold", tmp_path / "gold")
    code, output = typed("align", *files)
    assert code == 0 and "if it counts from 1: --one-based" in output
    code, output = typed("align", *files, "--one-based")
    assert code == 0 and "--one-based" not in output and "aer 0.00%" in output


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no word alignments at {DATA}")
def test_another_aligner_s_output_has_the_error_rate_it_was_published_with():
    code, output = typed(
        *("align", "--links", DATA / "enfr.awesome-align.out", "--gold", DATA / "enfr.gold"),
        *("--one-based", "--json"),
    )
    assert code == 0
    values = json.loads(output)
    assert round(100 * values["aer"], 2) == 4.07
    assert round(100 * values["precision"], 2) == 96.27
    assert round(100 * values["recall"], 2) == 95.42


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "nothing to align: give a RUN, or --links and --gold"),
        (["--links", "x"], "is compared with --gold, and takes no run or text"),
        (["--links", "x", "--gold", "x"], "x: there is no such file"),
        (["RUN", "--one-based"], "--one-based says how --gold counts, and there is none"),
        (["RUN", "--source", "x"], "--source and --target go together"),
        (["RUN", "--source", "nowhere", "--target", "nowhere"], "nowhere: there is no such file"),
        (["RUN", "--path", "encoder"], "is no attention from target to source"),
    ],
)
def test_what_cannot_be_aligned_is_one_line_and_exit_code_2(words, said, translator):
    code, output = typed("align", *[translator if word == "RUN" else word for word in words])
    assert code == 2
    assert said in output.splitlines()[-1]


def test_evaluate_takes_source_and_target_behind_one_option(translator, tmp_path):
    (tmp_path / "en").write_text("nine\nforty-two\n")
    (tmp_path / "de").write_text("neun\nzweiundvierzig\n")
    code, output = typed(
        "evaluate", translator, "--data", tmp_path / "en", tmp_path / "de", "--json"
    )
    assert code == 0 and json.loads(output)["exact_match"] in (0.0, 0.5, 1.0)
    code, output = typed("evaluate", translator, tmp_path / "en")
    assert code == 2 and "is one argument too many; --data goes before files" in output
