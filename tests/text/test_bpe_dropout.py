"""Pieces drawn by passing over merges, against the library's own draws and by hand."""

import json
from collections import Counter
from itertools import pairwise
from random import Random

import pytest
import tokenizers

from regard.text import Tokenizer
from regard.text.bpe_dropout import BPEDropout, BPEDroppedTexts

TEXTS = ("the dog barks </s> at the other dog", "", "barking dogs 漢字 qué", "lower lowest newer")


def cut_all(texts, tokenizer, rate, seed=1):
    return BPEDroppedTexts(texts, tokenizer, rate).draw(seed)


@pytest.mark.parametrize("kind", ["bpe", "byte-bpe"])
def test_without_dropout_the_pieces_are_the_tokenizer_s(trained, kind):
    words = trained(kind)
    assert cut_all(TEXTS, words, 0.0) == [words.encode(text).ids for text in TEXTS]


def test_when_every_merge_is_passed_over_characters_are_left(trained):
    words = trained("bpe")
    [ids] = cut_all(["the dog"], words, 1.0)
    assert words.tokens_of(ids) == ["▁", "t", "h", "e", "▁", "d", "o", "g"]


def test_however_a_text_is_cut_it_says_the_same(trained):
    words = trained("bpe")
    for seed in range(20):
        ids = cut_all(["the dogs are barking"], words, 0.5, seed)[0]
        assert words.decode(ids) == "the dogs are barking"


def test_one_seed_draws_the_same_pieces_and_another_draws_others(trained):
    words = trained("bpe")
    texts = ["barking lowest newest widest"] * 5
    assert cut_all(texts, words, 0.3, 7) == cut_all(texts, words, 0.3, 7)
    assert cut_all(texts, words, 0.3, 7) != cut_all(texts, words, 0.3, 8)


def test_pieces_are_as_likely_as_with_the_library_s_own_dropout(trained):
    words, rate, draws = trained("bpe"), 0.4, 4000
    state = json.loads(words.to_json())
    state["model"]["dropout"] = rate
    library = tokenizers.Tokenizer.from_str(json.dumps(state))
    theirs = Counter(
        tuple(library.encode("barking", add_special_tokens=False).ids) for _ in range(draws)
    )
    dropout, random = BPEDropout(words, rate), Random(0)
    ours = Counter(tuple(dropout.cut("▁barking", random)) for _ in range(draws))
    assert len(theirs) > 10
    for cut in theirs | ours:
        # Five standard errors of a difference of two shares.
        share = (theirs[cut] + ours[cut]) / (2 * draws)
        assert abs(theirs[cut] - ours[cut]) / draws < 5 * (2 * share * (1 - share) / draws) ** 0.5


def test_the_only_merge_of_two_letters_happens_as_often_as_it_is_not_dropped(trained):
    words = trained("bpe", lines=["ab ab ab"], vocabulary_size=8, needed=("unknown",))
    merges = json.loads(words.to_json())["model"]["merges"]
    assert len(merges) >= 1
    dropout, random, draws = BPEDropout(words, 0.25), Random(3), 4000
    left, right = merges[0]
    whole = sum(len(dropout.cut(left + right, random)) == 1 for _ in range(draws))
    assert abs(whole / draws - 0.75) < 5 * (0.25 * 0.75 / draws) ** 0.5


def test_two_words_that_stand_often_are_not_always_cut_alike(trained):
    words = trained("bpe")
    [ids] = cut_all(["barking " * 50], words, 0.5)
    starts = [at for at, token in enumerate(words.tokens_of(ids)) if token.startswith("▁")]
    assert len({b - a for a, b in pairwise(starts)}) > 1


def test_words_that_are_not_merged_from_pieces_cannot_be_dropped_out_of(trained):
    with pytest.raises(ValueError, match=r"bpe_dropout \(0\.1\) is for text\.kind 'bpe'.*'word'"):
        BPEDropout(trained("word"), 0.1)


@pytest.mark.parametrize("rate", [-0.1, 1.5])
def test_a_share_lies_between_none_and_all(trained, rate):
    with pytest.raises(ValueError, match="must be from 0 to 1"):
        BPEDropout(trained("bpe"), rate)


def test_the_stretches_that_no_piece_crosses_are_the_marked_words(trained):
    words: Tokenizer = trained("bpe")
    assert words.stretches_of("the dog") == ["▁the", "▁dog"]
