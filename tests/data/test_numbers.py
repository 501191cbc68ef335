"""Names of numbers against num2words, and their links against a hand that drew them."""

import random
import re
from collections import Counter

import pytest

from regard.data.numbers import (
    LANGUAGES,
    NumberNames,
    join_name,
    morphemes,
    number_example,
    number_examples,
    split_name,
)

OTHERS = tuple(language for language in LANGUAGES if language != "en")
CONNECTING = {"and", "und", "et", "y", "و"}


def corrected(name: str, language: str) -> str:
    """What num2words 0.5.14 gives, but for the one of thousands and millions, where it errs.

    In German it writes einhunderteinstausend and einhunderteins Millionen: before another word one
    is ein. In Spanish it writes veintiuno mil: before mil and millones uno is shortened to un.
    """
    if language == "de":
        return re.sub(r"eins(?=tausend| Millionen)", "ein", name)
    if language == "es":
        return re.sub(r"\buno (?=mil)", "un ", name.replace("veintiuno mil", "veintiún mil"))
    return name


@pytest.mark.parametrize("language", LANGUAGES)
def test_names_agree_with_num2words(language: str):
    num2words = pytest.importorskip("num2words").num2words
    chance = random.Random(3)
    large = [chance.randrange(10 ** chance.randint(4, 9)) for _ in range(1_000)]
    # Groups of 0, 1 and round numbers are where the rules are, and chance seldom goes there.
    rare = [0, 1, 11, 21, 71, 80, 81, 91, 100, 101, 121, 180, 181, 200, 500, 999]
    large += [m * 1_000_000 + t * 1000 + n for m in rare for t in rare for n in (0, 1, 80, 200)]
    for number in [*range(2_000), *large]:
        expected = corrected(num2words(number, lang=language), language)
        assert join_name(morphemes(number, language), language) == expected


@pytest.mark.parametrize(
    ("number", "language", "name"),
    [
        (101_000, "de", "einhunderteintausend"),
        (101_000_000, "de", "einhundertein Millionen"),
        (1_000_001, "de", "eine Million eins"),
        (716_017, "de", "siebenhundertsechzehntausendsiebzehn"),
        (80_000, "fr", "quatre-vingt mille"),
        (80_000_080, "fr", "quatre-vingts millions quatre-vingts"),
        (200_201, "fr", "deux cent mille deux cent un"),
        (71_171, "fr", "soixante et onze mille cent soixante et onze"),
        (21_021, "es", "veintiún mil veintiuno"),
        (31_000_131, "es", "treinta y un millones ciento treinta y uno"),
        (100_100_100, "es", "cien millones cien mil cien"),
        (1_400, "fa", "هزار و چهارصد"),
        (500_021_300, "fa", "پانصد میلیون و بیست و یک هزار و سیصد"),
        (100_001_015, "en", "one hundred million, one thousand and fifteen"),
    ],
)
def test_names_people_stumble_over(number: int, language: str, name: str):
    assert join_name(morphemes(number, language), language) == name
    assert split_name(name, language) == morphemes(number, language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_written_name_comes_apart_into_its_morphemes_again(language: str):
    chance = random.Random(5)
    for number in [*range(2_000), *(chance.randrange(1_000_000_000) for _ in range(500))]:
        tokens = morphemes(number, language)
        assert split_name(join_name(tokens, language), language) == tokens


def linked(number: int, language: str) -> set[tuple[str, str]]:
    example = number_example(number, language)
    return {(example.source[i], example.target[j]) for i, j in example.links}


def test_twenty_one_is_turned_around_in_german():
    example = number_example(21, "de")
    assert (example.source, example.target) == (("twenty", "one"), ("ein", "und", "zwanzig"))
    assert example.links == ((0, 2), (1, 0))
    assert (example.source_text, example.target_text) == ("twenty-one", "einundzwanzig")


@pytest.mark.parametrize(
    ("number", "language", "links"),
    [
        (1_000, "fr", {("one", "mille"), ("thousand", "mille")}),
        (
            91,
            "fr",
            {("ninety", "quatre"), ("ninety", "vingt"), ("ninety", "onze"), ("one", "onze")},
        ),
        (17, "fr", {("seventeen", "dix"), ("seventeen", "sept")}),
        (510, "es", {("five", "quinientos"), ("hundred", "quinientos"), ("ten", "diez")}),
        (
            622,
            "es",
            {("six", "seis"), ("hundred", "cientos"), ("twenty", "veinti"), ("two", "dós")},
        ),
        (401, "fa", {("four", "چهار"), ("hundred", "صد"), ("and", "و"), ("one", "یک")}),
        (1_000_001, "fa", {("one", "یک"), ("million", "میلیون"), ("and", "و")}),
        (16, "de", {("sixteen", "sechzehn")}),
        (0, "fa", {("zero", "صفر")}),
    ],
)
def test_links_drawn_by_hand(number: int, language: str, links: set[tuple[str, str]]):
    assert linked(number, language) == links


def test_the_same_word_in_two_groups_is_linked_within_its_own():
    example = number_example(2_002_202, "de")
    assert example.target == ("zwei", "Millionen", "zwei", "tausend", "zwei", "hundert", "zwei")
    assert example.source == ("two", "million", "two", "thousand", "two", "hundred", "and", "two")
    assert example.links == ((0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (7, 6))


@pytest.mark.parametrize("language", OTHERS)
def test_only_connecting_words_answer_to_nothing(language: str):
    for example in number_examples(language, 7, "train").take(500):
        sources, targets = (set(side) for side in zip(*example.links, strict=True))
        alone = {word for i, word in enumerate(example.source) if i not in sources}
        alone |= {word for j, word in enumerate(example.target) if j not in targets}
        assert alone <= CONNECTING


def test_what_is_trained_on_is_not_tested_on_whatever_the_seed():
    numbers = [
        {example.number for example in number_examples("de", seed, split, digits=4).take(1_500)}
        for seed, split in ((1, "train"), (2, "valid"), (3, "test"))
    ]
    train, valid, test = numbers
    assert not (train & valid or train & test or valid & test)
    assert min(len(split) for split in numbers) > 100


def test_an_example_depends_on_seed_and_index_alone():
    examples = number_examples("fr", 11, "valid")
    backwards = [examples[index] for index in reversed(range(20))]
    assert number_examples("fr", 11, "valid").take(20) == backwards[::-1]
    assert examples.take(5, start=3) == [examples[index] for index in range(3, 8)]
    assert number_examples("fr", 12, "valid").take(20) != backwards[::-1]
    first = next(iter(examples))
    assert first == examples[0]


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_every_length_of_number_comes_alike(split: str):
    lengths = Counter(len(str(e.number)) for e in number_examples("es", 13, split).take(1_800))
    assert sorted(lengths) == list(range(1, 10))
    # 200 of each are expected; five standard deviations of √(1800 · 1/9 · 8/9) are 67.
    assert all(133 < times < 267 for times in lengths.values())


def test_zero_is_trained_on_since_no_other_number_says_its_word():
    assert 0 in {example.number for example in number_examples("de", 1, "train").take(500)}


def test_a_wrong_answer_can_be_written_too():
    assert join_name((), "de") == ""
    assert join_name(("und", "Millionen", "ein", "ein"), "de") == "und Millionen einein"


@pytest.mark.parametrize("number", [-1, 1_000_000_000])
def test_numbers_without_a_name_are_refused(number: int):
    with pytest.raises(ValueError, match=rf"number \({number}\) must be 0 to 999,999,999"):
        morphemes(number, "en")


def test_what_is_no_number_language_or_split_is_refused():
    with pytest.raises(ValueError, match=r"language \('it'\) must be one of \('en', 'de', "):
        number_examples("it", 1, "train")
    with pytest.raises(ValueError, match=r"split \('dev'\) must be one of \('train', 'valid', "):
        number_examples("de", 1, "dev")
    with pytest.raises(ValueError, match=r"digits \(10\) must be 1 to 9"):
        number_examples("de", 1, "train", digits=10)
    with pytest.raises(ValueError, match=r"holds 'banana', which is in no name of a number"):
        split_name("twenty banana", "en")
    with pytest.raises(IndexError, match=r"index \(-1\) must be at least 0"):
        number_examples("de", 1, "train")[-1]


def test_several_languages_share_a_source_that_says_which_one_is_wanted():
    names = NumberNames(["de", "fa"])
    german, persian = names.take(2, seed=1, split="train")
    assert german.source[0] == "de:" and persian.source[0] == "fa:"
    alone = number_examples("de", seed=1, split="train")[0]
    assert german.source[1:] == alone.source and german.target == alone.target
    assert german.links == tuple((i + 1, j) for i, j in alone.links)
    assert names.segment("FA: Twenty-One") == "fa: twenty one"
    assert names.join("ein und zwanzig", "de: twenty one") == "einundzwanzig"
    assert names.join("بیست و یک", "fa: twenty one") == "بیست و یک"
    assert names.segment_target("einundzwanzig", "de: twenty one") == "ein und zwanzig"
    assert names.segment_target(" ein und zwanzig ", "de: twenty one") == "ein und zwanzig"
    assert NumberNames(["fr"]).segment_target("quatre-vingts", "eighty") == "quatre vingts"


@pytest.mark.parametrize("text", ["twenty-one", "it: twenty-one", ": one"])
def test_a_source_that_does_not_say_which_language_is_answered_with_those_there_are(text):
    with pytest.raises(ValueError, match=r"must begin with the language it asks for: de:, fa:"):
        NumberNames(["de", "fa"]).segment(text)
