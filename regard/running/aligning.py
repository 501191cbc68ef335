"""Word alignments for free: where a translator looks while it says a given translation.

from regard.running.aligning import align

links = align(run, [("a dog runs", "ein hund läuft")])  # a `Links` for each pair
str(links[0])                                           # "0-0 1-1 2-2", Pharaoh's format
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from regard.attention import Label, Look
from regard.metrics import Links, grow_diag_final
from regard.running.run import Run

METHODS = ("argmax", "threshold")
THRESHOLD = 0.3
"""The least weight of a link, unless it is said."""


def align(
    run: Run,
    pairs: Iterable[tuple[str, str]],
    back: Run | None = None,
    *,
    method: str | None = None,
    threshold: float | None = None,
    path: str | None = None,
    gold: Sequence[Links] | None = None,
) -> list[Links]:
    """The links of each (source, target) pair.

    `argmax`, the method unless a threshold is given, links each target word to the source word it
    looks at most, `threshold` to all that have at least that much weight. With a run of the
    opposite direction, `back`, the links of both are symmetrised by grow-diag-final. `path` chooses
    one attention; else all that look from target to source are averaged, with all their heads.
    `gold` is refused where it links a word that its pair does not have.
    """
    method, threshold = choose_method(method, threshold)
    pairs = list(pairs)
    if gold is not None and len(gold) != len(pairs):
        raise ValueError(
            f"gold has {len(gold)} lines and there are {len(pairs)} pairs: line n of gold is about "
            "pair n"
        )
    found = []
    for place, (source, target) in enumerate(pairs):
        weights = word_weights(run, source, target, path)
        if gold is not None:
            check_links(gold[place], weights, place)
        forward = links_of(weights, method, threshold)
        if back is not None:
            turned = links_of(word_weights(back, target, source, path), method, threshold)
            backward = Links({(i, j) for j, i in turned.possible})
            forward = grow_diag_final(forward, backward)
        found.append(forward)
    return found


def choose_method(method: str | None, threshold: float | None) -> tuple[str, float]:
    """The method that is asked for, by name or by its threshold, and its threshold."""
    chosen = method or ("argmax" if threshold is None else "threshold")
    if chosen not in METHODS:
        raise ValueError(f"method ({chosen!r}) must be one of {', '.join(METHODS)}")
    if threshold is None:
        return chosen, THRESHOLD
    if chosen != "threshold":
        raise ValueError(f"threshold ({threshold}) says nothing to the method {chosen!r}")
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold ({threshold}) must be above 0 and at most 1")
    return chosen, threshold


def word_weights(run: Run, source: str, target: str, path: str | None = None) -> Tensor:
    """How much each word of the target looks at each word of the source, (target, source).

    Pieces of a source word add up; of a target word, the mean is taken.
    """
    if not source.split() or not target.split():
        return torch.zeros(len(target.split()), len(source.split()))
    looks = [look for look in run.look(source, target) if look.kind == "cross"]
    chosen = [look for look in looks if path in (None, look.path)]
    if not chosen:
        paths = ", ".join(look.path for look in looks) or "none"
        raise ValueError(
            f"path ({path!r}) is no attention from target to source; there are: {paths}"
        )
    return torch.stack([_join_pieces(look) for look in chosen]).mean(dim=0)


def _join_pieces(look: Look) -> Tensor:
    """The weights of one look, word by word instead of piece by piece."""
    rows, columns = (
        _membership(labels, text or "")
        for labels, text in ((look.queries, look.query_text), (look.keys, look.key_text))
    )  # (word, piece)
    weights = look.weights.mean(dim=0)  # (target piece, source piece), over the heads
    means = rows / rows.sum(dim=1, keepdim=True).clamp(min=1)
    return means @ weights @ columns.T


def _membership(labels: Sequence[Label], text: str) -> Tensor:
    """1 where a piece belongs to a word, (word, piece); words are what blanks separate."""
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    held = torch.zeros(len(spans), len(labels))
    for piece, label in enumerate(labels):
        if label.start is None or label.end is None:
            continue  # the end of a sentence is no word
        for word, (start, end) in enumerate(spans):
            held[word, piece] = float(max(start, label.start) < min(end, label.end))
    return held


def check_links(gold: Links, weights: Tensor, place: int) -> None:
    """Refuse a link to a word that is not there; weights are (target, source)."""
    targets, sources = weights.shape
    for source, target in sorted(gold.possible):
        if source >= sources or target >= targets:
            raise ValueError(
                f"gold line {place + 1} links {source}-{target}, but its source has {sources} "
                f"words and its target {targets}, counted from 0 (--one-based: from 1)"
            )


def links_of(weights: Tensor, method: str = "argmax", threshold: float = THRESHOLD) -> Links:
    """Links from weights (target, source)."""
    if not weights.numel():
        return Links()
    if method == "argmax":
        strongest = weights.argmax(dim=1).tolist()
        return Links({(source, target) for target, source in enumerate(strongest)})
    targets, sources = (weights >= threshold).nonzero(as_tuple=True)
    return Links(set(zip(sources.tolist(), targets.tolist(), strict=True)))
