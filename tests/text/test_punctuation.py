"""Words of raw text, with the marks around them as words of their own."""

import pytest

from regard.text import TextConfig, Tokenizer

TEXT = "It's a  well-made \"film\"... don't (ever) miss 'it' -- 7/10, café!"
WORDS = (
    "it's a well-made \" film \" . . . don't ( ever ) miss ' it ' - - 7 / 10 , café !"  # in words
)


def tokenizer_of(*lines, roles=("unknown",), **settings):
    config = TextConfig(split_punctuation=True, lowercase=True, **settings)
    return Tokenizer.train(lines, config, roles)


def test_marks_are_words_but_for_apostrophes_and_hyphens_within():
    encoded = tokenizer_of(TEXT).encode(TEXT)
    assert encoded.tokens == WORDS.split()
    assert [TEXT[begin:end].lower() for begin, end in encoded.offsets] == WORDS.split()


def test_counts_are_those_of_words_without_their_marks():
    words = tokenizer_of("film, film. film!", "films", minimum_count=2)
    assert words.tokens_of(range(words.size)) == ["<unk>", "film"]
    assert words.encode("Film!").tokens == ["film", "<unk>"]


def test_what_is_saved_cuts_alike(tmp_path):
    words = tokenizer_of(TEXT)
    words.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    assert again.encode(TEXT).ids == words.encode(TEXT).ids


def test_without_an_unknown_the_word_that_is_missing_is_named_with_its_place():
    words = tokenizer_of("a film.", roles=())
    assert words.encode("A film. A").tokens == ["a", "film", ".", "a"]
    message = "the word '!' at position 6 is not in the vocabulary"
    with pytest.raises(ValueError, match=message):
        words.encode("a film!")


def test_without_the_setting_words_are_what_stands_between_blanks():
    words = Tokenizer.train(["a film."], TextConfig(), ("unknown",))
    assert words.encode("a film.").tokens == ["a", "film."]
