import pytest

from regard.text import TextConfig


def test_a_misspelled_kind_is_told_its_nearest_name():
    with pytest.raises(
        ValueError, match=r"kind \('wordpeice'\) is not known; did you mean 'wordpiece'\?"
    ):
        TextConfig(kind="wordpeice")


def test_pieces_need_to_know_how_many_they_may_be():
    with pytest.raises(ValueError, match=r"vocabulary_size \(None\) must be given for kind 'bpe'"):
        TextConfig(kind="bpe")


@pytest.mark.parametrize("name", ["vocabulary_size", "minimum_count"])
def test_counts_are_one_or_more(name):
    with pytest.raises(ValueError, match=rf"{name} \(0\) must be 1 or more"):
        TextConfig(**{name: 0})


@pytest.mark.parametrize("special", ["_", "", "end of text"])
def test_a_special_cannot_be_mistaken_for_text(special):
    with pytest.raises(
        ValueError, match=r"specials \('.*'\): a special has two characters or more"
    ):
        TextConfig(specials=(special,))


def test_a_special_is_declared_once():
    with pytest.raises(ValueError, match="'<s>' is declared twice"):
        TextConfig(specials=("<s>", "</s>", "<s>"))


def test_only_words_have_punctuation_to_be_split_off():
    with pytest.raises(ValueError, match=r"split_punctuation \(True\) is for kind 'word': 'bpe'"):
        TextConfig(kind="bpe", vocabulary_size=100, split_punctuation=True)
