"""Copy, reverse and any-B: small enough to be checked by looking."""

from collections.abc import Callable

import pytest

from regard.data.sequences import (
    Example,
    Examples,
    any_b_examples,
    copy_examples,
    reverse_examples,
    split_of,
)

KINDS = [copy_examples, reverse_examples, any_b_examples]


def test_a_copy_is_the_same_again():
    for example in copy_examples(3, "train").take(200):
        assert example.target == example.source
        assert example.links == tuple((i, i) for i in range(len(example.source)))


def test_a_reversed_string_is_linked_crosswise():
    for example in reverse_examples(3, "train", symbols="xyz").take(200):
        assert set(example.source) <= set("xyz")
        assert list(example.target) == list(example.source)[::-1]
        assert len(example.links) == len(example.source)
        assert all(example.source[i] == example.target[j] for i, j in example.links)
        assert {i + j for i, j in example.links} == {len(example.source) - 1}


def test_any_b_answers_b_if_there_is_one():
    examples = any_b_examples(5, "train").take(600)
    for example in examples:
        assert example.target == (("B",) if "B" in example.source else ("A",))
        bs = [place for place, symbol in enumerate(example.source) if symbol == "B"]
        assert example.links == tuple((place, 0) for place in bs)
    answers = [example.target[0] for example in examples]
    # Half and half: five standard deviations of √(600 · ¼) are 61.
    assert abs(answers.count("B") - 300) < 61


@pytest.mark.parametrize("kind", KINDS)
def test_lengths_go_from_one_to_the_longest(kind: Callable[..., Examples[str, Example]]):
    lengths = {len(example.source) for example in kind(7, "train", longest=5).take(300)}
    assert lengths == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("kind", KINDS)
def test_splits_share_no_string(kind: Callable[..., Examples[str, Example]]):
    train, valid, test = (
        {example.source for example in kind(11, split, longest=13).take(400)}
        for split in ("train", "valid", "test")
    )
    assert not (train & valid or train & test or valid & test)


def test_nine_in_ten_are_for_training():
    splits = [split_of(number) for number in range(20_000)]
    assert splits.count("train") == pytest.approx(18_000, abs=250)
    assert splits.count("valid") == pytest.approx(1_000, abs=160)
    assert splits.count("test") == pytest.approx(1_000, abs=160)


def test_the_text_of_an_example_has_its_tokens_apart():
    example = Example(("b", "a"), ("a", "b"), ((0, 1), (1, 0)))
    assert (example.source_text, example.target_text) == ("b a", "a b")


def test_a_split_that_holds_nothing_says_so():
    split = next(s for s in ("valid", "test") if s != split_of("a"))
    with pytest.raises(ValueError, match=f"no example of this kind belongs to the split '{split}'"):
        copy_examples(1, split, longest=1, symbols="a")[0]


def test_strings_of_nothing_are_refused():
    with pytest.raises(ValueError, match=r"longest \(0\) must be at least 1"):
        copy_examples(1, "train", longest=0)
    with pytest.raises(ValueError, match="symbols must hold at least one symbol"):
        reverse_examples(1, "train", symbols="")
