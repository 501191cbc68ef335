"""Word links out of attention: from pieces to words, from weights to links, both ways."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from click.testing import CliRunner

import regard
from regard.cli import main
from regard.metrics import Links
from regard.running.aligning import align, links_of, word_weights
from regard.tasks import alignment
from regard.tasks.alignment import join_pieces

DATA = Path(__file__).parents[3] / "shared" / "data" / "word_alignment"


def typed(*words):
    done = CliRunner().invoke(main, [str(word) for word in words])
    return done.exit_code, done.output


def weighing(*tables):
    """A run whose attention looks as it is told."""
    told = [torch.tensor(table) for table in tables]
    task = SimpleNamespace(word_weights=lambda model, resources, pairs, path: iter(told))
    return SimpleNamespace(task=task, model=None, resources=None)


class Pieces(list):
    """A text and the places of its pieces."""

    def __init__(self, text, *offsets):
        super().__init__(offsets)
        self.text, self.offsets = text, list(offsets)


TARGET = Pieces("ab c", (0, 1), (1, 2), (3, 4))  # a·b·c, and behind them the end of the sentence
SOURCE = Pieces("x yz", (0, 1), (2, 3), (3, 4))  # x·y·z
PIECES = [[0.6, 0.2, 0.2], [0.2, 0.4, 0.4], [0.1, 0.5, 0.4], [1.0, 0.0, 0.0]]
WORDS = [[0.4, 0.6], [0.1, 0.9]]


def test_pieces_of_a_source_word_add_up_and_those_of_a_target_word_are_averaged():
    # (.6 + .2) / 2 and (.4 + .8) / 2; the end of the sentence is no word.
    found = join_pieces(torch.tensor(PIECES), SOURCE, TARGET)
    torch.testing.assert_close(found, torch.tensor(WORDS))
    padded = torch.nn.functional.pad(torch.tensor(PIECES), (0, 2, 0, 3), value=9.0)
    torch.testing.assert_close(join_pieces(padded, SOURCE, TARGET), found)


def test_links_are_the_strongest_or_all_that_are_strong():
    weights = torch.tensor([[0.4, 0.6], [0.1, 0.9]])
    assert str(links_of(weights)) == "1-0 1-1"
    assert str(links_of(weights, "threshold", 0.4)) == "0-0 1-0 1-1"
    assert str(links_of(torch.zeros(0, 3))) == ""


def test_a_threshold_asks_for_its_method():
    run, pair = weighing(WORDS), [("x yz", "ab c")]
    assert str(align(run, pair)[0]) == "1-0 1-1"
    assert str(align(run, pair, threshold=0.4)[0]) == "0-0 1-0 1-1"
    assert str(align(run, pair, method="threshold")[0]) == "0-0 1-0 1-1"
    assert str(align(run, pair, method="threshold", threshold=0.7)[0]) == "1-1"


def test_two_directions_are_symmetrised():
    forward = weighing(WORDS)  # 1-0 1-1
    back = weighing([[0.9, 0.1], [0.2, 0.8]])  # x → ab, yz → c: 0-0 1-1
    (links,) = align(forward, [("x yz", "ab c")], back)
    # Both say 1-1. Beside it stands 1-0, which links ab; from there 0-0 links x.
    assert str(links) == "0-0 1-0 1-1"
    turned = align(back, [("ab c", "x yz")], forward)
    assert str(turned[0]) == "0-0 0-1 1-1"


def test_every_pair_moves_the_bar():
    moves = []
    align(weighing(WORDS, WORDS), [("x yz", "ab c")] * 2, done=lambda: moves.append(1))
    assert len(moves) == 2


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
        align(weighing(WORDS), [], **settings)


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    small = {"data.examples": 40, "data.valid_examples": 4, "data.test_examples": 6}
    small |= {"training.steps": 2, "model.hidden_size": 8, "model.attention_size": 8}
    return regard.train("numbers-de", tmp_path_factory.mktemp("runs") / "run", small).folder


RECIPE = """
[task]
kind = "translation"

[data]
generator = "numbers-de"
examples = 40
valid_examples = 4

[model]
name = "transformer"
encoder_layers = 1
layers = 2
model_size = 8
heads = 2
feedforward_size = 8

[training]
steps = 1
"""
PAIRS = [
    ("nine thousand and forty-two", "neun tausend zwei und vierzig"),
    ("", "neun"),
    ("nine", "neun"),
    ("nine", ""),
    ("eleven", "neun tausend und eins"),
    ("one hundred and twelve", "zwölf"),
]


def weights_looked_at(run, source, target):
    """The same by a look at one pair: these tokens are words, so nothing need be joined."""
    sizes = len(target.split()), len(run.task.segment(source).split())
    if not all(sizes):
        return torch.zeros(*sizes)
    looks = [look for look in run.look(source, target) if look.kind == "cross"]
    table = torch.stack([look.weights.mean(dim=0) for look in looks]).mean(dim=0)
    return table[:-1]  # behind the last word the end looks, too


def test_pairs_in_batches_weigh_as_each_does_alone(translator):
    run = regard.load(translator)
    found = list(word_weights(run, PAIRS))
    assert len(found) == len(PAIRS)
    for weights, pair in zip(found, PAIRS, strict=True):
        torch.testing.assert_close(weights, weights_looked_at(run, *pair), atol=1e-6, rtol=1e-5)


def test_blanks_alone_are_no_words_though_they_may_be_pieces(tmp_path):
    recipe = RECIPE.replace("[model]", '[text]\nkind = "character"\n\n[model]')
    (tmp_path / "letters.toml").write_text(recipe)
    run = regard.load(regard.train(str(tmp_path / "letters.toml"), tmp_path / "run").folder)
    assert run.tokenizer.encode("  ").ids
    pairs = [("nine", "  "), ("nine", "neun")]
    found = list(alignment.word_weights(run.model, run.tokenizer, pairs))
    assert [tuple(weights.shape) for weights in found] == [(0, 1), (1, 1)]


def test_several_attentions_are_averaged_and_one_can_be_chosen(tmp_path):
    (tmp_path / "small.toml").write_text(RECIPE)
    run = regard.load(regard.train(str(tmp_path / "small.toml"), tmp_path / "run").folder)
    (pair, *_) = PAIRS
    paths = [f"decoder.layers.{layer}.cross_attention" for layer in (0, 1)]
    one, other = (next(word_weights(run, [pair], path)) for path in paths)
    assert (one - other).abs().max() > 1e-3
    torch.testing.assert_close(next(word_weights(run, [pair])), (one + other) / 2)
    torch.testing.assert_close(next(word_weights(run, [pair])), weights_looked_at(run, *pair))
    with pytest.raises(ValueError, match=f"is no attention .*there are: {', '.join(paths)}"):
        next(word_weights(run, [pair], "encoder.layers.0.attention"))


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
