"""Where sentences end, and where they only seem to."""

import time

import pytest

from regard.text.sentences import split_sentences


def sentences(text):
    return [text[begin:end] for begin, end in split_sentences(text)]


@pytest.mark.parametrize(
    "expected",
    [
        ["It rains.", "Does it?", "Yes!!!", "Well?!", "so what."],
        ["Dr. No met Mr. and Mrs. Smith, e.g. on St. Martin.", "They ran."],
        ["J. R. Smith saw it at 5 p.m. on Friday.", "So did I.", "The end."],
        ["He lives in the U.S. and in the U.K.", "The film does not."],
        ["It was slow... so slow.", "And then...", "It ended."],
        ['"Stop!" he cried.', '"Why?" she said.', '"Because."', "They stopped."],
        ["It cost 3.5 million (not 3.50.) and more.", "1. It is long.", "2. It is bad."],
        ["He said no.", "Then he saw No. 7 of vol. 3.", "He sat.", "Everyone left."],
        ["So bad.", "*** It is *** over."],
    ],
)
def test_sentences_end_where_people_would_say(expected):
    assert sentences(" ".join(expected)) == expected


def test_breaks_and_blank_lines_end_a_sentence_and_wrapped_lines_do_not():
    text = "a title<br /><br />A line\nthat is wrapped\n \nA paragraph<BR>more"
    expected = ["a title", "A line\nthat is wrapped", "A paragraph", "more"]
    assert sentences(text) == expected


def test_a_forgotten_blank_is_seen_and_a_web_address_is_left_alone():
    assert sentences("It is bad.The end is worse!Really.") == [
        "It is bad.",
        "The end is worse!",
        "Really.",
    ]
    assert sentences("See www.example.com or node.js now") == ["See www.example.com or node.js now"]


def test_signs_without_letters_belong_to_the_sentence_before_them():
    assert sentences("Great. ***** !!! Then more.") == ["Great. ***** !!!", "Then more."]
    assert sentences("...") == ["..."]


def test_nothing_has_no_sentences():
    assert split_sentences("") == split_sentences(" \n\n <br/> \t") == []


def test_offsets_are_characters_of_the_raw_text():
    text = "  Café 😀 first.   Second!  "
    assert split_sentences(text) == [(2, 15), (18, 25)]


@pytest.mark.parametrize("piece", [".", " ", ". ", "Mr. ", "\n", "<br", '"', "a.", "\n "])
def test_long_nonsense_takes_time_in_proportion(piece):
    started = time.monotonic()
    split_sentences(piece * 100_000)
    assert time.monotonic() - started < 5  # what is quadratic takes minutes
