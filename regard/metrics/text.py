"""Texts against reference texts: BLEU and chrF as sacrebleu counts them, and exact matches.

`references[i]` belongs to `hypotheses[i]`: a string, or a list of strings of which each is as good
as the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, TypeAlias

from regard.metrics.score import Score
from regard.naming import suggest

References: TypeAlias = Sequence[str] | Sequence[Sequence[str]]


def bleu(
    hypotheses: Sequence[str],
    references: References,
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> Score:
    """BLEU = 100 · BP · exp(¼ Σₙ ln pₙ) for n = 1 … 4, with BP = min(1, exp(1 − r / c))

    pₙ is the share of n-grams found in a reference, each at most as often as it stands there; c is
    the length of all hypotheses, r that of the references nearest in length. Counted over the whole
    corpus by sacrebleu, with its tokenizers: "13a" cuts off punctuation, "none" takes what blanks
    separate, for text that is tokenized already.

    `details` has `precision_1` … `precision_4` in percent, `brevity_penalty`, and both lengths.

    Papineni et al. (2002), sections 2.1 to 2.3; Post (2018) on the signature.
    """
    from sacrebleu.metrics.bleu import BLEU  # here, not above: it is slow to import

    texts, streams = _reference_streams(hypotheses, references)
    if tokenize not in BLEU.TOKENIZERS:
        raise ValueError(
            f"tokenize ({tokenize!r}) is not known; {suggest(tokenize, BLEU.TOKENIZERS)}"
        )
    # Whoever says "none" knows that the text is tokenized; `force` keeps sacrebleu from warning.
    counter = BLEU(tokenize=tokenize, lowercase=lowercase, force=tokenize == "none")
    result = counter.corpus_score(texts, streams)
    details = {f"precision_{n}": float(p) for n, p in enumerate(result.precisions, start=1)}
    details |= {
        "brevity_penalty": float(result.bp),
        "hypothesis_length": float(result.sys_len),
        "reference_length": float(result.ref_len),
    }
    return Score("bleu", float(result.score), str(counter.get_signature()), details)


def chrf(hypotheses: Sequence[str], references: References, *, lowercase: bool = False) -> Score:
    """chrF = 100 · (1 + β²) P R / (β² P + R) with β = 2: recall counts twice as much as precision

    P and R are means over the characters' n-grams of n = 1 … 6, blanks left out. Counted over the
    whole corpus by sacrebleu.

    Popović (2015); β = 2 as in Popović (2016).
    """
    from sacrebleu.metrics.chrf import CHRF  # here, not above: it is slow to import

    texts, streams = _reference_streams(hypotheses, references)
    counter = CHRF(lowercase=lowercase)
    result = counter.corpus_score(texts, streams)
    details = {"beta": float(counter.beta)}  # which sacrebleu writes into the name, "chrF2"
    return Score("chrf", float(result.score), str(counter.get_signature()), details)


def exact_match(hypotheses: Sequence[str], references: References) -> Score:
    """exact_match = hypotheses that equal one of their references, letter for letter / all"""
    texts, allowed = _check_texts(hypotheses, references)
    matches = sum(
        text in its_references for text, its_references in zip(texts, allowed, strict=True)
    )
    numbers = {len(its_references) for its_references in allowed}
    signature = f"nrefs:{numbers.pop() if len(numbers) == 1 else 'var'}|case:mixed"
    details = {"matches": float(matches), "count": float(len(texts))}
    return Score("exact_match", matches / len(texts), signature, details)


def _reference_streams(
    hypotheses: Sequence[str], references: References
) -> tuple[list[str], list[Sequence[Any]]]:
    """What sacrebleu takes: all first references, all second ones, …, None where there is none."""
    texts, allowed = _check_texts(hypotheses, references)
    return texts, list(zip_longest(*allowed))


def _check_texts(
    hypotheses: Sequence[str], references: References
) -> tuple[list[str], list[list[str]]]:
    """The texts, and for each of them the list of its references."""
    for name, texts in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(texts, str):
            raise ValueError(f"{name} ({texts!r}) must be a list of strings, not one string")
        if not texts:
            raise ValueError(f"{name} ({texts!r}) must hold at least one text")
    if len(hypotheses) != len(references):
        raise ValueError(
            f"hypotheses ({len(hypotheses)}) and references ({len(references)}) must be equally "
            "many: references[i] holds the reference or references of hypotheses[i]"
        )
    for place, text in enumerate(hypotheses):
        _check_string(f"hypotheses[{place}]", text)
    allowed = []
    for place, given in enumerate(references):
        allowed.append(_check_references(given, f"references[{place}]"))
    return list(hypotheses), allowed


def _check_references(given: str | Sequence[str], name: str) -> list[str]:
    """The references of one text as a list."""
    texts = [given] if isinstance(given, str) or not isinstance(given, Sequence) else list(given)
    if not texts:
        raise ValueError(f"{name} ({given!r}) must hold at least one reference")
    for text in texts:
        _check_string(name, text)
    return texts


def _check_string(name: str, text: object) -> None:
    if not isinstance(text, str):
        raise ValueError(f"{name} ({text!r}) must be a string")
