"""BLEU and chrF against sacrebleu, the numbers of Papineni et al. and a BLEU of our own."""

import logging
import math
import re
from collections import Counter

import pytest
import sacrebleu
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from regard.metrics import bleu, chrf, exact_match

QUICK = settings(max_examples=60, deadline=None)

HYPOTHESES = [
    "The dog bit the man.",
    "It wasn't surprising.",
    "The man had just bitten him, hadn't he?",
]
REFERENCES = [
    ["The dog bit the man.", "The dog had bit the man."],
    ["It was not unexpected.", "No one was surprised."],
    ["The man bit him first.", "The man had bitten the dog, hadn't he?"],
]
FIRST = [some[0] for some in REFERENCES]
STREAMS = [FIRST, [some[1] for some in REFERENCES]]

# Papineni et al. (2002), examples 1 and 2.
GUIDE = [
    "It is a guide to action that ensures that the military will forever heed Party commands",
    "It is the guiding principle which guarantees the military forces always being under the "
    "command of the Party",
    "It is the practical guide for the army always to heed the directions of the party",
]
GOOD = (
    "It is a guide to action which ensures that the military always obeys the commands of the party"
)
POOR = "It is to insure the troops forever hearing the activity guidebook that party direct"


def ngrams(words: list[str], n: int) -> Counter:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def papineni(hypotheses: list[str], references: list[list[str]]) -> float:
    """BLEU as in sections 2.1 to 2.3 of the paper: clipped counts, brevity, geometric mean."""
    found, total, length, wanted = [0] * 4, [0] * 4, 0, 0
    for text, some in zip(hypotheses, references, strict=True):
        words, allowed = text.split(), [reference.split() for reference in some]
        length += len(words)
        wanted += min((abs(len(each) - len(words)), len(each)) for each in allowed)[1]
        for n in range(1, 5):
            for gram, count in ngrams(words, n).items():
                found[n - 1] += min(count, max(ngrams(each, n)[gram] for each in allowed))
                total[n - 1] += count
    if not all(found):
        return 0.0
    brevity = 1.0 if length > wanted else math.exp(1 - wanted / length)
    logs = sum(math.log(part / whole) for part, whole in zip(found, total, strict=True))
    return 100 * brevity * math.exp(logs / 4)


def test_bleu_is_the_geometric_mean_worked_out_by_hand():
    score = bleu(["a b c d e"], ["a b c d f"], tokenize="none")
    assert score.name == "bleu"
    assert score.value == pytest.approx(100 * 0.2**0.25)  # 4/5 · 3/4 · 2/3 · 1/2 = 0.2
    assert score.details == pytest.approx(
        {
            "precision_1": 80.0,
            "precision_2": 75.0,
            "precision_3": 200 / 3,
            "precision_4": 50.0,
            "brevity_penalty": 1.0,
            "hypothesis_length": 5.0,
            "reference_length": 5.0,
        }
    )


def test_a_hypothesis_that_is_too_short_pays_for_it():
    score = bleu(["a b c d"], ["a b c d e"], tokenize="none")
    assert score.value == pytest.approx(77.8800783)  # 100 · exp(1 − 5/4)
    assert score.details["brevity_penalty"] == pytest.approx(0.778800783)
    assert (score.details["hypothesis_length"], score.details["reference_length"]) == (4.0, 5.0)


def test_seven_times_the_is_right_twice_as_papineni_et_al_count():
    references = ["The cat is on the mat", "There is a cat on the mat"]
    score = bleu(["the the the the the the the"], [references], tokenize="none", lowercase=True)
    assert score.details["precision_1"] == pytest.approx(100 * 2 / 7)


@pytest.mark.parametrize(
    ("text", "one", "two"), [(GOOD, 17 / 18, 10 / 17), (POOR, 8 / 14, 1 / 13)], ids=["good", "poor"]
)
def test_the_candidates_of_papineni_et_al_have_the_precisions_of_the_paper(text, one, two):
    score = bleu([text], [GUIDE], tokenize="none", lowercase=True)
    assert score.details["precision_1"] == pytest.approx(100 * one)
    assert score.details["precision_2"] == pytest.approx(100 * two)


def test_bleu_prints_its_precisions_and_penalty_as_papers_do():
    score = bleu(["a b c d e"], ["a b c d f"], tokenize="none")
    precisions = "/".join(f"{score.details[f'precision_{n}']:.1f}" for n in range(1, 5))
    assert precisions == "80.0/75.0/66.7/50.0"


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("tokenize", ["13a", "none", "intl", "char"])
def test_bleu_is_what_sacrebleu_gives_when_called_directly(tokenize, lowercase):
    loud = [text.upper() if lowercase else text for text in HYPOTHESES]
    options = {"tokenize": tokenize, "lowercase": lowercase}
    assert bleu(loud, FIRST, **options).value == pytest.approx(
        sacrebleu.corpus_bleu(loud, [FIRST], **options).score, abs=1e-12
    )
    several = sacrebleu.corpus_bleu(loud, STREAMS, **options)
    score = bleu(loud, REFERENCES, **options)
    assert score.value == pytest.approx(several.score, abs=1e-12)
    assert [score.details[f"precision_{n}"] for n in range(1, 5)] == several.precisions


def test_chrf_is_what_sacrebleu_gives_when_called_directly():
    assert chrf(HYPOTHESES, FIRST).value == sacrebleu.corpus_chrf(HYPOTHESES, [FIRST]).score
    score = chrf(HYPOTHESES, REFERENCES)
    assert score.name == "chrf"
    assert score.value == sacrebleu.corpus_chrf(HYPOTHESES, STREAMS).score
    loud = [text.upper() for text in HYPOTHESES]
    quiet = [text.lower() for text in HYPOTHESES]
    assert chrf(loud, [each.lower() for each in FIRST], lowercase=True).value == pytest.approx(
        sacrebleu.corpus_chrf(quiet, [[each.lower() for each in FIRST]]).score
    )
    assert chrf(loud, FIRST).value < chrf(loud, FIRST, lowercase=True).value


def test_chrf_is_the_f_score_worked_out_by_hand():
    # a, b of a, b, c and ab of ab, bc: P = 1, R = (2/3 + 1/2) / 2 = 7/12, and with β = 2
    # 5 P R / (4 P + R) = 35/55.
    score = chrf(["a b"], ["ab c"])
    assert score.value == pytest.approx(100 * 35 / 55)
    assert score.details == {"beta": 2.0}


def test_signatures_are_sacrebleus_own():
    version = sacrebleu.__version__
    assert bleu(HYPOTHESES, FIRST).signature == (
        f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    )
    assert bleu(HYPOTHESES, REFERENCES, tokenize="none", lowercase=True).signature == (
        f"nrefs:2|case:lc|eff:no|tok:none|smooth:exp|version:{version}"
    )
    assert chrf(HYPOTHESES, FIRST, lowercase=True).signature == (
        f"nrefs:1|case:lc|eff:yes|nc:6|nw:0|space:no|version:{version}"
    )


def test_hypotheses_may_have_different_numbers_of_references():
    some = [REFERENCES[0], FIRST[1:2], REFERENCES[2][:1]]
    streams = [FIRST, [REFERENCES[0][1], None, None]]
    expected = sacrebleu.corpus_bleu(HYPOTHESES, streams).score
    score = bleu(HYPOTHESES, some)
    assert score.value == expected
    assert score.signature.startswith("nrefs:var|")
    assert bleu(HYPOTHESES, [REFERENCES[0], *FIRST[1:]]).value == expected
    assert chrf(HYPOTHESES, some).value == sacrebleu.corpus_chrf(HYPOTHESES, streams).score


WORDS = st.lists(st.sampled_from("abc"), min_size=4, max_size=9).map(" ".join)


@QUICK
@given(st.lists(st.tuples(WORDS, st.lists(WORDS, min_size=1, max_size=3)), min_size=1, max_size=5))
def test_bleu_agrees_with_the_formula_of_the_paper(corpus):
    hypotheses, references = map(list, zip(*corpus, strict=True))
    expected = papineni(hypotheses, references)
    assume(expected > 0)  # where an n-gram is never found, sacrebleu smooths and the paper does not
    assert bleu(hypotheses, references, tokenize="none").value == pytest.approx(expected)


@QUICK
@given(st.lists(WORDS, min_size=1, max_size=5))
def test_a_text_against_itself_has_full_marks(texts):
    assert bleu(texts, texts).value == pytest.approx(100.0)
    assert chrf(texts, texts).value == pytest.approx(100.0)
    assert exact_match(texts, texts).value == 1.0


def test_tokenized_text_declared_as_such_draws_no_warning(caplog):
    lines = ["ein hund läuft ."] * 100
    logger = logging.getLogger("sacrebleu")
    logger.addHandler(caplog.handler)
    try:
        assert bleu(lines, lines, tokenize="none").value == pytest.approx(100.0)
        assert caplog.messages == []
        bleu(lines, lines)
        assert "forgot to detokenize" in caplog.text
    finally:
        logger.removeHandler(caplog.handler)


def test_exact_match_is_letter_for_letter_and_any_reference_will_do():
    score = exact_match(["yes", "Yes", "no", "no "], ["yes", "yes", "no", "no"])
    assert (score.name, score.value) == ("exact_match", 0.5)
    assert score.signature == "nrefs:1|case:mixed"
    assert score.details == {"matches": 2.0, "count": 4.0}
    several = exact_match(["a", "b"], [["x", "a"], ["y", "z"]])
    assert (several.value, several.signature) == (0.5, "nrefs:2|case:mixed")
    assert exact_match(["a", "b"], [["a"], ["y", "b"]]).signature == "nrefs:var|case:mixed"


def test_part_of_a_reference_is_no_exact_match():
    assert exact_match(["a"], ["abc"]).value == 0.0


REFUSED = {
    "hypotheses (2) and references (3) must be equally many": (["a", "b"], ["a", "b", "c"]),
    "hypotheses (3) and references (1) must be equally many": (["a", "b", "c"], [["a", "b", "c"]]),
    "hypotheses ([]) must hold at least one text": ([], []),
    "references ([]) must hold at least one text": (["a"], []),
    "hypotheses ('abc') must be a list of strings, not one string": ("abc", ["a", "b", "c"]),
    "references ('abc') must be a list of strings, not one string": (["a", "b", "c"], "abc"),
    "hypotheses[1] (7) must be a string": (["a", 7], ["a", "b"]),
    "hypotheses[0] (None) must be a string": ([None], ["a"]),
    "references[1] (None) must be a string": (["a", "b"], ["a", None]),
    "references[0] (3.5) must be a string": (["a"], [["a", 3.5]]),
    "references[1] ([]) must hold at least one reference": (["a", "b"], [["a"], []]),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_no_text_is_refused_with_name_and_value(message):
    with pytest.raises(ValueError, match=re.escape(message)):
        exact_match(*REFUSED[message])


@pytest.mark.parametrize("measure", [bleu, chrf, exact_match])
def test_every_measure_of_texts_refuses_what_is_no_text(measure):
    with pytest.raises(ValueError, match=r"references\[1\] \(None\) must be a string"):
        measure(["a", "b"], ["a", None])


def test_a_misspelled_tokenizer_is_answered_with_the_nearest_name():
    with pytest.raises(ValueError, match=r"tokenize \('13b'\) is not known; did you mean '13a'\?"):
        bleu(["a"], ["a"], tokenize="13b")
