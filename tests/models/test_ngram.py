"""The n-gram model against arithmetic by hand, and against the formulas in plain loops."""

import gzip
import os
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from regard.data.batches import Words
from regard.models.ngram import SMOOTHINGS, Ngram, NgramConfig
from regard.models.smoothing import estimate_discounts

END, A, B, C, D = range(5)
CORPUS = np.array([A, B, END, A, B, END, A, C, END])


class Plain:
    """The textbook, with dictionaries and fractions: (words before it, word) → how often.

    A sentence is `<s> words </s>`, and no n-gram reaches further back than its `<s>`.
    """

    def __init__(self, sentences: list[list[int]], order: int, vocabulary_size: int):
        self.order, self.vocabulary_size = order, vocabulary_size
        self.raw: Counter[tuple[str | int, ...]] = Counter()
        for words in sentences:
            symbols = ["<s>", *words, END]
            for last in range(1, len(symbols)):
                for first in range(max(0, last - order + 1), last + 1):
                    self.raw[tuple(symbols[first : last + 1])] += 1

    def context(self, before: list[int]) -> tuple[str | int, ...]:
        symbols = ["<s>", *before]
        return tuple(symbols[max(0, len(symbols) - self.order + 1) :])

    def kneser_ney(self, word: int, context: tuple[str | int, ...] | None) -> Fraction:
        if context is None:
            return Fraction(1, self.vocabulary_size)
        shorter = self.kneser_ney(word, context[1:] if context else None)
        counts = {
            ngram: self.adjusted(ngram) for ngram in self.raw if len(ngram) == len(context) + 1
        }
        followers = {ngram: c for ngram, c in counts.items() if ngram[:-1] == context}
        if not followers:
            return shorter
        total = sum(followers.values())
        D = self.discounts(Counter(counts.values()))
        handed_down = Fraction(sum(D[min(c, 3)] for c in followers.values()), total)
        own = followers.get((*context, word), 0)
        return Fraction(own - D[min(own, 3)], total) + handed_down * shorter

    def adjusted(self, ngram: tuple[str | int, ...]) -> int:
        if len(ngram) == self.order or ngram[0] == "<s>":
            return self.raw[ngram]
        longer = [other for other in self.raw if len(other) == len(ngram) + 1]
        return len({other[0] for other in longer if other[1:] == ngram})

    @staticmethod
    def discounts(t: Counter[int]) -> list[Fraction]:
        halves = [Fraction(0), Fraction(1, 2), Fraction(1), Fraction(3, 2)]
        if not all(t[i] for i in (1, 2, 3, 4)):
            return halves
        Y = Fraction(t[1], t[1] + 2 * t[2])
        found = [Fraction(0)] + [i - (i + 1) * Y * Fraction(t[i + 1], t[i]) for i in (1, 2, 3)]
        return found if min(found[1:]) > 0 else halves

    def additive(self, word: int, context: tuple[str | int, ...], alpha: Fraction) -> Fraction:
        followers = [c for g, c in self.raw.items() if g[:-1] == context]
        total = sum(followers) + alpha * self.vocabulary_size
        return (self.raw[(*context, word)] + alpha) / total

    def stupid(self, word: int, context: tuple[str | int, ...] | None) -> Fraction:
        if context is None:
            return Fraction(1, self.vocabulary_size)
        if not self.raw[(*context, word)]:
            return Fraction(2, 5) * self.stupid(word, context[1:] if context else None)
        total = sum(c for ngram, c in self.raw.items() if ngram[:-1] == context)
        return Fraction(self.raw[(*context, word)], total)


def sentences(seed: int, many: int, vocabulary_size: int) -> list[list[int]]:
    """Sentences of 0 to 6 words, the first words far more frequent than the last."""
    numbers = np.random.default_rng(seed)
    chances = 1 / np.arange(1, vocabulary_size) ** 1.5
    words = [
        numbers.choice(
            np.arange(1, vocabulary_size), numbers.integers(0, 7), p=chances / chances.sum()
        )
        for _ in range(many)
    ]
    return [sentence.tolist() for sentence in words]


def stream(sentences: list[list[int]]) -> np.ndarray:
    return np.array([word for sentence in sentences for word in [*sentence, END]])


def fitted(order: int = 3, smoothing: str = "kneser-ney", vocabulary_size: int = 13) -> Ngram:
    config = NgramConfig(vocabulary_size=vocabulary_size, order=order, smoothing=smoothing)
    return Ngram(config).fit(stream(sentences(3, 200, 11)), end=END)


def test_a_bigram_model_worked_out_by_hand():
    # a follows 1 word (the beginning), b 1, c 1, the end 2: 5 in all, discounts ½, 1, 1½.
    # Given to the uniform: (½ + ½ + ½ + 1) / 5 = ½, so the end is (2 − 1) / 5 + ½ · 1/5 = 3/10.
    model = Ngram(NgramConfig(vocabulary_size=5, order=2)).fit(CORPUS, end=END)
    unseen = [3 / 10, 1 / 5, 1 / 5, 1 / 5, 1 / 10]
    np.testing.assert_allclose(model.distribution([D]), unseen, rtol=1e-14)
    # a is followed by b twice and c once and keeps (½ + 1) / 3 = ½ for the rest.
    after_a = [0.15, 0.1, (2 - 1) / 3 + 0.1, (1 - 0.5) / 3 + 0.1, 0.05]
    np.testing.assert_allclose(model.distribution([A]), after_a, rtol=1e-14)
    # a began all three sentences: (3 − 1½) / 3 + ½ · 1/5. After b there is the end: ½ + ½ · 3/10.
    expected = np.log([0.6, 1 / 3 + 0.1, 0.65])
    np.testing.assert_allclose(model.log_probabilities([A, B, END]), expected, rtol=1e-14)
    np.testing.assert_allclose(model.perplexity([A, B, END]), np.exp(-expected.mean()))


def test_discounts_come_from_counts_of_counts():
    # t = 8, 4, 2, 1, so Y = ½: 1 − 2 · ½ · 4/8, 2 − 3 · ½ · 2/4, 3 − 4 · ½ · 1/2
    counts = np.repeat([0, 1, 2, 3, 4, 5, 9], [3, 8, 4, 2, 1, 1, 5])
    np.testing.assert_allclose(estimate_discounts(counts), [0.5, 1.25, 2.0], rtol=1e-14)


@pytest.mark.parametrize("times", [[], [1, 1, 2, 3], [1, 2, 3] + [4] * 9])
def test_a_corpus_too_small_for_discounts_takes_halves(times: list[int]):
    assert estimate_discounts(np.array(times, dtype=np.int64)).tolist() == [0.5, 1.0, 1.5]


@pytest.mark.parametrize(("order", "many"), [(1, 90), (2, 5), (3, 90), (4, 5), (4, 90)])
def test_kneser_ney_agrees_with_fractions_in_plain_loops(order: int, many: int):
    said, vocabulary_size = sentences(order, many, 7), 7
    plain = Plain(said, order, vocabulary_size)
    model = Ngram(NgramConfig(vocabulary_size=vocabulary_size, order=order)).fit(stream(said), END)
    for before in ([], [1], [1, 2], [2, 1, 1], [5, 6], [6, 1, 6, 5], [1, 1, 3, 1, 2]):
        expected = [plain.kneser_ney(w, plain.context(before)) for w in range(vocabulary_size)]
        assert sum(expected) == 1
        np.testing.assert_allclose(
            model.distribution(before), np.array(expected, float), rtol=1e-12
        )


def test_the_plain_loops_met_both_kinds_of_discounts():
    ngrams = Plain(sentences(3, 90, 7), 3, 7)
    lengths = [
        Counter(ngrams.adjusted(ngram) for ngram in ngrams.raw if len(ngram) == length)
        for length in (1, 2, 3)
    ]
    halves = [Plain.discounts(times)[1] == Fraction(1, 2) for times in lengths]
    assert True in halves and False in halves


@pytest.mark.parametrize("order", [1, 2, 3])
def test_additive_counts_every_word_a_little_more(order: int):
    said, vocabulary_size = sentences(17, 23, 7), 7
    plain = Plain(said, order, vocabulary_size)
    config = NgramConfig(vocabulary_size=7, order=order, smoothing="additive", added_count=0.25)
    model = Ngram(config).fit(stream(said), END)
    for before in ([], [1], [1, 2], [6, 6], [1, 1, 2]):
        context = plain.context(before)
        expected = [plain.additive(word, context, Fraction(1, 4)) for word in range(7)]
        np.testing.assert_allclose(
            model.distribution(before), np.array(expected, float), rtol=1e-12
        )


@pytest.mark.parametrize("order", [1, 2, 4])
def test_stupid_backoff_pays_two_fifths_for_every_word_it_forgets(order: int):
    said = sentences(19, 23, 7)
    plain = Plain(said, order, 11)
    config = NgramConfig(vocabulary_size=11, order=order, smoothing="stupid-backoff")
    model = Ngram(config).fit(stream(said), END)
    for before in ([], [1], [1, 2], [10, 1], [10, 10, 10], [1, 1, 2]):
        expected = [plain.stupid(word, plain.context(before)) for word in range(11)]
        np.testing.assert_allclose(
            model.distribution(before), np.array(expected, float), rtol=1e-12
        )


@pytest.mark.parametrize(
    ("order", "smoothing"),
    [(1, "kneser-ney"), (2, "additive"), (3, "kneser-ney"), (5, "kneser-ney"), (5, "additive")],
)
def test_the_whole_vocabulary_shares_one(order: int, smoothing: str):
    model = fitted(order, smoothing)
    numbers = np.random.default_rng(5)
    for length in range(8):
        total = model.distribution(numbers.integers(0, 13, length)).sum()
        assert abs(total - 1) < 1e-12


@pytest.mark.parametrize(
    ("order", "smoothing"),
    [(1, "kneser-ney"), (2, "stupid-backoff")] + [(4, smoothing) for smoothing in SMOOTHINGS],
)
def test_a_corpus_in_one_go_is_its_words_one_by_one(order: int, smoothing: str):
    model = fitted(order, smoothing)
    ids = stream([[1, 2, 1, 1, 12], [], [1, 1, 3], [2]])
    one_by_one, before = [], []
    for word in ids.tolist():
        one_by_one.append(np.log(model.distribution(before)[word]))
        before = [] if word == END else [*before, word]
    np.testing.assert_allclose(model.log_probabilities(ids), one_by_one, rtol=1e-12)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_a_sentence_ended_is_forgotten(smoothing: str):
    model = fitted(4, smoothing)
    np.testing.assert_array_equal(model.distribution([2, 3, END, 1]), model.distribution([1]))
    np.testing.assert_array_equal(model.distribution([2, 3, END]), model.distribution([]))


def test_without_an_end_a_corpus_is_one_long_sentence():
    ids = np.array([1, 2, 3, 1, 2, 4, 1, 2, 3, 5])
    model = Ngram(NgramConfig(vocabulary_size=7, order=3)).fit(ids)
    assert model.distribution([1, 2]).argmax() == 3
    assert model.distribution([3, 3, 1, 2]).argmax() == 3
    for context in ([], [1], [6, 6], [3, 5]):
        assert abs(model.distribution(context).sum() - 1) < 1e-12
    assert np.isfinite(model.log_probabilities(ids)).all()


def test_an_order_longer_than_any_sentence_does_no_harm():
    long, short = (
        Ngram(NgramConfig(vocabulary_size=5, order=order)).fit(CORPUS, END) for order in (9, 3)
    )
    np.testing.assert_allclose(long.distribution([A]), short.distribution([A]), rtol=1e-14)
    assert abs(long.distribution([A, B, C, A, B, C, A, B, C]).sum() - 1) < 1e-12


def test_what_the_longest_context_forgets_makes_no_difference():
    model = fitted(order=3)
    np.testing.assert_array_equal(
        model.distribution([7, 7, 7, 7, 1, 2]), model.distribution([3, 5, 1, 1, 2])
    )


def test_steps_give_the_log_of_the_distribution_for_prompts_of_different_length():
    model = fitted(order=4)
    prompts = [[], [1], [1, 2, 1, 1, 3], [2, END, 1], [12, 12]]
    state = model.start(Words.prompts(prompts))
    said = torch.tensor([1, 2, 3, END, 2])
    for _ in range(3):
        logits, state = model.step(said, state)
        assert logits.shape == (5, 13)
        prompts = [[*prompt, int(word)] for prompt, word in zip(prompts, said, strict=True)]
        for row, prompt in zip(logits, prompts, strict=True):
            np.testing.assert_allclose(row.exp(), model.distribution(prompt), rtol=1e-5)
        said = logits.argmax(dim=-1)


def test_padding_on_the_left_is_never_read():
    model = Ngram(NgramConfig(vocabulary_size=5, order=3)).fit((CORPUS + 1) % 5, end=END + 1)
    state = model.start(Words.prompts([[], [A + 1, B + 1]], filler=C + 1))
    logits, _ = model.step(torch.tensor([A + 1, A + 1]), state)
    np.testing.assert_allclose(logits[0].exp(), model.distribution([A + 1]), rtol=1e-5)


def test_a_unigram_model_steps_without_a_context():
    model = fitted(order=1)
    state = model.start(Words.prompts([[3], []]))
    for words in ([1, 2], [2, END]):
        logits, state = model.step(torch.tensor(words), state)
        for row in logits:
            np.testing.assert_allclose(row.exp(), model.distribution([]), rtol=1e-5)


def test_what_is_sampled_by_steps_follows_the_distribution():
    model, many = fitted(order=3), 40_000
    state = model.start(Words.prompts([[1]]))
    logits, _ = model.step(torch.tensor([2]), state)
    torch.manual_seed(11)
    drawn = torch.multinomial(logits.softmax(-1)[0], many, replacement=True)
    shares = drawn.bincount(minlength=13).numpy() / many
    # Four standard deviations of a share p drawn n times, √(p (1 − p) / n), at p = ½.
    np.testing.assert_allclose(shares, model.distribution([1, 2]), atol=4 * 0.5 / many**0.5)


def test_picked_rows_go_on_as_if_they_had_been_alone():
    model = fitted(order=4)
    state = model.start(Words.prompts([[1, 2], [3], [2, 2, 2]]))
    kept = state.pick(torch.tensor([2, 0, 2]))
    logits, _ = model.step(torch.tensor([1, 1, 2]), kept)
    for row, words in zip(logits, [[2, 2, 2, 1], [1, 2, 1], [2, 2, 2, 2]], strict=True):
        np.testing.assert_allclose(row.exp(), model.distribution(words), rtol=1e-5)
    again, _ = model.step(torch.tensor([1, 1, 2]), state)  # the picked state left it as it was
    np.testing.assert_allclose(again[1].exp(), model.distribution([3, 1]), rtol=1e-5)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_a_saved_model_answers_the_same(tmp_path: Path, smoothing: str):
    model = fitted(4, smoothing)
    model.save(tmp_path / "model.safetensors")
    loaded = Ngram.load(tmp_path / "model.safetensors")
    assert loaded.config == model.config
    ids = stream(sentences(29, 40, 13))
    np.testing.assert_array_equal(loaded.log_probabilities(ids), model.log_probabilities(ids))
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


def test_a_model_without_an_end_is_saved_without_one():
    model = Ngram(NgramConfig(vocabulary_size=5, order=2)).fit(CORPUS)
    assert Ngram.from_tensors(model.config, model.tensors()).end is None


def test_a_save_that_fails_leaves_the_old_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "model.safetensors"
    fitted(2).save(path)

    def full(_descriptor: int) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        fitted(3).save(path)
    assert Ngram.load(path).config.order == 2
    assert [left.name for left in tmp_path.iterdir()] == ["model.safetensors"]


def test_an_open_vocabulary_reads_strangers_as_unknown():
    config = NgramConfig(vocabulary_size=5, order=2, unknown=D)
    model = Ngram(config).fit([A, 77, END, A, -1, END], end=END)
    np.testing.assert_array_equal(model.distribution([99]), model.distribution([D]))
    np.testing.assert_array_equal(model.log_probabilities([A, 5]), model.log_probabilities([A, D]))
    assert model.distribution([A]).argmax() == D


def test_a_closed_vocabulary_refuses_strangers():
    config = NgramConfig(vocabulary_size=5)
    with pytest.raises(ValueError, match=r"ids\[1\] \(5\) is outside the vocabulary_size \(5\)"):
        Ngram(config).fit([A, 5], end=END)
    model = Ngram(config).fit(CORPUS, end=END)
    with pytest.raises(ValueError, match=r"ids\[0\] \(-1\) is outside"):
        model.step(torch.tensor([-1]), model.start(Words.prompts([[]])))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"vocabulary_size": 0}, r"vocabulary_size \(0\) must be at least 1"),
        ({"order": 0}, r"order \(0\) must be at least 1"),
        (
            {"smoothing": "good-turing"},
            r"smoothing \('good-turing'\) must be one of kneser-ney, ",
        ),
        ({"added_count": 0.0}, r"added_count \(0.0\) must be above 0"),
        ({"backoff": 1.5}, r"backoff \(1.5\) must be above 0 and at most 1"),
        ({"unknown": 5}, r"unknown \(5\) must be below vocabulary_size \(5\)"),
    ],
)
def test_a_config_refuses_what_cannot_work(wrong: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        NgramConfig(**{"vocabulary_size": 5} | wrong)


def test_what_cannot_be_counted_is_refused():
    model = Ngram(NgramConfig(vocabulary_size=5))
    with pytest.raises(ValueError, match="has counted nothing yet: call fit first"):
        model.perplexity(CORPUS)
    with pytest.raises(ValueError, match=r"ids \(0,\) must be \(position,\), with at least 1"):
        model.fit([], end=END)
    with pytest.raises(ValueError, match=r"ids \(3, 3\) must be \(position,\)"):
        model.fit(CORPUS.reshape(3, 3), end=END)
    with pytest.raises(ValueError, match=r"ids \(float64\) must be whole numbers"):
        model.fit(CORPUS / 2, end=END)
    with pytest.raises(ValueError, match=r"end \(5\) must be below vocabulary_size \(5\)"):
        model.fit(CORPUS, end=5)


def test_stupid_backoff_has_no_perplexity():
    with pytest.raises(ValueError, match="its scores do not add up to 1"):
        fitted(2, "stupid-backoff").perplexity([1, END])


def test_a_broken_file_says_what_is_wrong(tmp_path: Path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(FileNotFoundError, match="no n-gram model at"):
        Ngram.load(path)
    path.write_bytes(b"not a model")
    with pytest.raises(ValueError, match="is not a whole safetensors file"):
        Ngram.load(path)
    save_file({"end": np.array([1])}, path)
    with pytest.raises(ValueError, match="but not of an n-gram model"):
        Ngram.load(path)


def test_tensors_of_another_model_are_refused():
    model = fitted(order=2)
    with pytest.raises(ValueError, match=r"tensors has no 'levels.3.keys'"):
        Ngram.from_tensors(NgramConfig(vocabulary_size=13, order=3), model.tensors())
    with pytest.raises(ValueError, match=r"levels.1 holds \[14, 15, 3\] numbers, must hold \[18, "):
        Ngram.from_tensors(NgramConfig(vocabulary_size=17, order=2), model.tensors())


def test_kneser_ney_5_grams_reach_148_on_the_penn_treebank():
    here = Path(__file__).parents[2].parent / "shared/data"
    folder = Path(os.environ.get("REGARD_DATA", here)) / "ptb"
    if not folder.exists():
        pytest.skip("the Penn Treebank is not there: set REGARD_DATA to the folder that holds ptb")
    vocabulary = {"</s>": END}

    def read(split: str) -> np.ndarray:
        text = gzip.decompress((folder / f"ptb.{split}.txt.gz").read_bytes()).decode()
        words = text.replace("\n", " </s> ").split()
        return np.array([vocabulary.setdefault(word, len(vocabulary)) for word in words])

    train, valid = read("train"), read("valid")
    assert (len(vocabulary), len(valid)) == (10_000, 73_760)
    model = Ngram(NgramConfig(vocabulary_size=10_000)).fit(train, end=END)
    assert model.perplexity(valid) < 148.1
    numbers = np.random.default_rng(31)
    for place in numbers.integers(5, len(valid), 20):
        for context in (valid[place - 5 : place], numbers.integers(0, 10_000, 4)):
            assert abs(model.distribution(context).sum() - 1) < 1e-9


def among(place: int, value: Any) -> Callable[[np.ndarray], np.ndarray]:
    """Another number at one place of an array."""

    def change(array: np.ndarray) -> np.ndarray:
        changed = array.copy()
        changed[place] = value
        return changed

    return change


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("levels.2.keys", among(3, -1), "levels.2.keys must grow from 0 to below 169"),
        ("levels.2.keys", among(0, -7), "levels.2.keys must grow"),
        ("levels.2.keys", among(-2, 2**62), "levels.2.keys must grow"),
        ("levels.2.keys", among(-1, 168), "levels.2.keys must grow"),
        ("levels.2.keys", lambda a: a[::-1].copy(), "levels.2.keys must grow"),
        ("levels.2.keys", lambda a: a.astype(np.float64), r"levels.2.keys \(float64 \(\d+,\)\)"),
        ("levels.2.keys", lambda a: a[None], r"levels.2.keys \(int64 \(1, \d+\)\) must be int64"),
        ("levels.2.keys", lambda a: a[:0], r"levels.2 holds \[0, "),
        ("levels.2.kept", among(0, np.nan), "levels.2 must hold shares"),
        ("levels.2.kept", among(0, np.inf), "levels.2 must hold shares"),
        ("levels.2.kept", among(0, 7.0), "levels.2 must hold shares"),
        ("levels.2.backoff", among(0, -0.1), "levels.2 must hold shares"),
        ("levels.1.keys", among(12, 13), "levels.1.keys must grow from 0 to below 13"),
        (
            "end",
            lambda a: np.array([13]),
            r"end \(\[13\]\) must be one id of the vocabulary, or -1",
        ),
        ("end", lambda a: np.array([], dtype=np.int64), "must be one id of the vocabulary"),
        ("end", lambda a: np.array([-(2**63)]), "must be one id of the vocabulary"),
        ("end", lambda a: np.array(1), r"end \(int64 \(\)\) must be int64"),
    ],
)
def test_numbers_that_no_counting_leaves_are_refused(name: str, change: Any, message: str):
    model = fitted(order=2)
    tensors = model.tensors()
    tensors[name] = change(tensors[name])
    with pytest.raises(ValueError, match=message) as told:
        Ngram.from_tensors(model.config, tensors)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("config", ["[]", "3", '{"order": 2}', "{", "[" * 5000, '{"a": 1}'])
def test_settings_that_are_none_are_refused_in_one_line(config: str, tmp_path: Path):
    path = tmp_path / "model.safetensors"
    save_file(fitted(order=2).tensors(), path, metadata={"config": config})
    with pytest.raises(ValueError, match=r".+") as told:
        Ngram.load(path)
    assert "\n" not in str(told.value)
