from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from regard.text.counting import WORD_PATTERN, count_words, rank_by_count


@given(st.text(alphabet=st.sampled_from("aб \t\n\r\x0b\x1c\x1f\x85\xa0\u200b\u2003\u2028\u3000漢")))
def test_words_are_what_the_library_finds_between_blanks(text):
    expected = [word for word, _ in pre_tokenizers.WhitespaceSplit().pre_tokenize_str(text)]
    assert WORD_PATTERN.findall(text) == expected


def test_the_most_frequent_come_first_and_equals_by_the_alphabet():
    assert rank_by_count(count_words(["b a c", "c d b", "c"], str)) == ["c", "b", "a", "d"]
    assert rank_by_count(Counter()) == []
