"""Word alignments for free: where a translator looks while it says a given translation.

from regard.running.aligning import align

links = align(run, [("a dog runs", "ein hund läuft")])  # a `Links` for each pair
str(links[0])                                           # "0-0 1-1 2-2", Pharaoh's format
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from torch import Tensor

from regard.metrics import Links, grow_diag_final
from regard.running.run import Run

WINDOW = 1024
"""Pairs that are sorted by length together: the first links wait for this many at the most."""
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
    done: Callable[[], object] = lambda: None,
) -> list[Links]:
    """The links of each (source, target) pair.

    `argmax`, the method unless a threshold is given, links each target word to the source word it
    looks at most, `threshold` to all that have at least that much weight. With a run of the
    opposite direction, `back`, the links of both are symmetrised by grow-diag-final. `path` chooses
    one attention; else all that look from target to source are averaged, with all their heads.
    `gold` is refused where it links a word that its pair does not have. `done` is called for each
    pair, as it moves a bar.
    """
    method, threshold = choose_method(method, threshold)
    pairs = list(pairs)
    if gold is not None and len(gold) != len(pairs):
        raise ValueError(
            f"gold has {len(gold)} lines and there are {len(pairs)} pairs: line n of gold is about "
            "pair n"
        )
    directions = [word_weights(run, pairs, path)]
    if back is not None:
        directions.append(word_weights(back, [(target, source) for source, target in pairs], path))
    found = []
    for place, (forward, *backward) in enumerate(zip(*directions, strict=True)):
        if gold is not None:
            check_links(gold[place], forward, place)
        links = links_of(forward, method, threshold)
        for weights in backward:
            turned = links_of(weights, method, threshold)
            links = grow_diag_final(links, Links({(i, j) for j, i in turned.possible}))
        found.append(links)
        done()
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


def word_weights(
    run: Run, pairs: Sequence[tuple[str, str]], path: str | None = None
) -> Iterator[Tensor]:
    """How much each target word looks at each source word, (target, source), pair by pair."""
    for first in range(0, len(pairs), WINDOW):
        window = pairs[first : first + WINDOW]
        yield from run.task.word_weights(run.model, run.resources, window, path)


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
