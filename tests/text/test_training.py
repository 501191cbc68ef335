import json
import os
import subprocess
import sys
from itertools import repeat

import pytest

from regard.text import END, KINDS, UNKNOWN, TextConfig, Tokenizer
from regard.text.config import PIECE_KINDS
from regard.text.training import _repeat_words

TRAIN_AND_PRINT = """
import hashlib, sys
from regard.text import TextConfig, Tokenizer
lines = [line for line in sys.stdin.read().split("\\n")]
for kind, size in [("word", None), ("character", None), ("bpe", 150), ("byte-bpe", 400),
                   ("wordpiece", 150), ("unigram", 150)]:
    made = Tokenizer.train(lines, TextConfig(kind=kind, vocabulary_size=size), ("unknown", "end"))
    print(kind, hashlib.sha256(made.to_json().encode()).hexdigest())
"""


def test_words_are_numbered_specials_first_then_by_count_then_by_the_alphabet(trained):
    lines = ["b a c <unk>", "c d b", "<unk> c </s>"]
    made = trained("word", lines, ("unknown", "end"))
    assert made.tokens_of(range(made.size)) == ["<unk>", "</s>", "c", "b", "a", "d"]


def test_characters_are_numbered_alike_with_blanks_and_newlines_among_them(trained):
    made = trained("character", ["ab\nb b"], ("end",))
    assert made.tokens_of(range(made.size)) == ["</s>", "b", "\n", " ", "a"]


def test_ties_fall_the_same_way_in_every_process():
    # Many words of equal count: whatever settles ties by the order of a hash table shows here.
    lines = "\n".join(" ".join(f"{a}{b}{c}" for a in "klmn" for b in "aeiou") for c in "prst")
    runs = [
        subprocess.run(
            [sys.executable, "-c", TRAIN_AND_PRINT],
            input=lines,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert len(runs[0].splitlines()) == len(KINDS)


def test_rare_words_become_the_unknown(trained):
    made = trained("word", ["a a a b b c"], ("unknown",), minimum_count=2)
    assert made.encode("a b c d").tokens == ["a", "b", UNKNOWN, UNKNOWN]


def test_a_size_counts_the_specials_too(trained):
    made = trained("word", ["a a a b b c"], ("unknown", "end"), vocabulary_size=3)
    assert made.tokens_of(range(made.size)) == [UNKNOWN, END, "a"]


@pytest.mark.parametrize(("kind", "size"), [*zip(PIECE_KINDS, (97, 307, 127, 61), strict=True)])
def test_pieces_fill_the_size_that_was_asked_for_if_the_corpus_has_them(
    trained, corpus, kind, size
):
    assert trained(kind, [*corpus] * 3, vocabulary_size=size).size == size


def test_bpe_merges_what_stands_together_most_often(trained):
    # The words of Sennrich et al. (2016), algorithm 1. By hand: es 9, est 9, then lo, ▁lo and ▁low
    # with 7 each; of equals the pair that was numbered first, and 11 characters are.
    lines = ["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3
    made = trained("bpe", lines, (), vocabulary_size=16)
    assert made.tokens_of(range(11, 16)) == ["es", "est", "lo", "▁lo", "▁low"]


def test_wordpiece_tells_beginnings_from_continuations(trained):
    made = trained("wordpiece", ["ab ab abab"] * 3, ("unknown",), vocabulary_size=7)
    assert sorted(made.tokens_of(range(made.size)))[:2] == ["##a", "##ab"]
    assert made.encode("abab").tokens == ["ab", "##ab"]


def test_rare_merges_are_left_out(trained):
    made = trained("bpe", ["ab ab ab cd"], (), minimum_count=2)
    assert made.id_of("▁ab") is not None
    assert made.id_of("cd") is None


@pytest.mark.parametrize("kind", ["bpe", "wordpiece", "unigram"])
def test_a_size_below_the_alphabet_is_refused(trained, kind):
    with pytest.raises(
        ValueError, match=r"vocabulary_size \(10\) is too small: .* alone make \d\d"
    ):
        trained(kind, vocabulary_size=10)


def test_bytes_need_their_256(trained):
    with pytest.raises(ValueError, match=r"vocabulary_size \(200\) is too small: .* make 260"):
        trained("byte-bpe", vocabulary_size=200)


@pytest.mark.parametrize("kind", KINDS)
def test_specials_must_leave_room(trained, kind):
    with pytest.raises(ValueError, match=r"vocabulary_size \(4\) leaves no room beside 4 specials"):
        trained(kind, vocabulary_size=4)


@pytest.mark.parametrize("kind", ["word", "character", "bpe", "wordpiece", "unigram"])
def test_nothing_is_learned_from_nothing(trained, kind):
    with pytest.raises(ValueError, match="there is no text to learn a vocabulary from"):
        trained(kind, [])


@pytest.mark.parametrize("kind", ["word", "character"])
def test_types_are_not_dropped_when_nothing_stands_for_them(trained, kind):
    with pytest.raises(ValueError, match=r"leave out 1 of 3 types, such as '.', .* 'unknown'"):
        trained(kind, ["a", "a", "b", "b", "c"], (), minimum_count=2)


@pytest.mark.parametrize("kind", KINDS)
def test_what_goes_wrong_in_the_corpus_is_what_one_hears(trained, kind):
    def broken():
        yield "a line"
        raise ValueError("corpus.txt, line 2: not UTF-8")

    with pytest.raises(ValueError, match=r"corpus\.txt, line 2: not UTF-8"):
        trained(kind, broken())


def test_a_recipe_goes_before_the_task_about_specials(corpus):
    config = TextConfig(specials=("<unk>", "[MASK]"))
    made = Tokenizer.train(corpus, config, ("end",))
    assert made.specials == ("<unk>", "[MASK]")
    assert made.roles == {"unknown": 0, "mask": 1}


@pytest.mark.parametrize("kind", PIECE_KINDS)
def test_no_piece_grows_into_a_special(trained, kind):
    made = trained(kind, ["<s> a <s> b<s>c </s> <unk> <pad>"] * 50)
    stored = json.loads(made.to_json())
    assert stored["added_tokens"] == []
    said = made.encode("a <s> b<s>c </s> <unk> <pad>").ids
    assert not {made.pad, made.unknown, made.start, made.end} & set(said)


def test_a_frequent_word_is_fed_as_often_as_it_was_seen():
    fed = " ".join(_repeat_words({"a": 2003, "b": 1})).split()  # type: ignore[arg-type]
    assert fed == [*repeat("a", 2003), "b"]
