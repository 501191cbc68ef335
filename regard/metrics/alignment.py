"""Which source word belongs to which target word: links in Pharaoh's format, and their error rate.

One line a sentence pair, one token a link: `3-4` joins source word 3 to target word 4, counted from
0. Gold files also know links that are merely possible, `3p4` or `3?4`: no mistake to make, and none
to leave out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from regard.metrics.score import Score

Link: TypeAlias = tuple[int, int]  # source word, target word, both counted from 0

_TOKEN = re.compile(r"([0-9]+)([-p?])([0-9]+)")

# Steps to the neighbours of a link, in the order Koehn et al. try them: beside it, then across.
_NEIGHBOURS = ((0, -1), (-1, 0), (0, 1), (1, 0), (-1, -1), (1, -1), (-1, 1), (1, 1))


@dataclass(frozen=True)
class Links:
    """The links of one sentence pair; written by `str` as they are read, `0-0 1-2 1p3`.

    Sure links are possible too, S ⊆ P: `possible` holds all links, whatever it was given.
    """

    sure: AbstractSet[Link] = frozenset()
    possible: AbstractSet[Link] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "sure", frozenset(self.sure))
        object.__setattr__(self, "possible", frozenset(self.possible) | self.sure)

    def __str__(self) -> str:
        return " ".join(
            f"{i}-{j}" if (i, j) in self.sure else f"{i}p{j}" for i, j in sorted(self.possible)
        )


def read_links(path: str | Path, *, one_based: bool = False) -> list[Links]:
    """Read a file of links, one sentence pair a line; an empty line has no links."""
    if not Path(path).exists():
        raise FileNotFoundError(f"{path}: there is no such file")
    # Bytes that are no text are shown as \x8b in the complaint about the token they stand in.
    text = Path(path).read_bytes().decode("utf-8-sig", errors="backslashreplace")
    lines = text.removesuffix("\n").split("\n") if text else []
    return [
        _parse(line, f"{path}, line {number}", 1 if one_based else 0)
        for number, line in enumerate(lines, start=1)
    ]


def _parse(line: str, where: str, first: int) -> Links:
    by_sign: dict[str, set[Link]] = {"-": set(), "p": set(), "?": set()}
    for token in line.split():
        match = _TOKEN.fullmatch(token)
        if match is None:
            raise ValueError(f"{where}: {token!r} is not a link such as 3-4, or 3p4 if not sure")
        i, j = int(match[1]), int(match[3])
        if min(i, j) < first:
            raise ValueError(f"{where}: {token!r} has a 0, but one-based links count from 1")
        by_sign[match[2]].add((i - first, j - first))
    return Links(by_sign["-"], by_sign["p"] | by_sign["?"])


def aer(links: Sequence[Links], gold: Sequence[Links]) -> Score:
    """AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|), summed over the corpus; lower is better

    A are all links given, S the sure and P ⊇ S the possible ones of the gold standard. `details`
    has precision = |A ∩ P| / |A|, recall = |A ∩ S| / |S|, and how many links there are.

    Och & Ney (2003), section 5.
    """
    if len(links) != len(gold):
        raise ValueError(
            f"links ({len(links)} lines) and gold ({len(gold)} lines) must be equally many: "
            "line n of both is about the same sentence pair"
        )
    given = sum(len(ours.possible) for ours in links)
    sure = sum(len(theirs.sure) for theirs in gold)
    possible = sum(len(theirs.possible) for theirs in gold)
    if not given + sure:
        raise ValueError(
            f"links and gold ({len(gold)} lines) hold no links to compare: "
            "an error rate over nothing is no number"
        )
    both = list(zip(links, gold, strict=True))
    in_sure = sum(len(ours.possible & theirs.sure) for ours, theirs in both)
    in_possible = sum(len(ours.possible & theirs.possible) for ours, theirs in both)
    details = {
        "precision": in_possible / given if given else 0.0,
        "recall": in_sure / sure if sure else 0.0,
        "links": float(given),
        "sure": float(sure),
        "possible": float(possible),
    }
    # Without possible links AER is 1 − F1, and is not to be compared with one that has them.
    kinds = "sure+possible" if possible > sure else "sure"
    value = 1 - (in_sure + in_possible) / (given + sure)
    return Score("aer", value, f"gold:{kinds}|lines:{len(gold)}", details)


def intersect(forward: Links, backward: Links) -> Links:
    """Keep the links both directions agree on; both are source-target pairs."""
    return Links(forward.possible & backward.possible)


def union(forward: Links, backward: Links) -> Links:
    """Keep every link of either direction; both are source-target pairs."""
    return Links(forward.possible | backward.possible)


def grow_diag_final(forward: Links, backward: Links) -> Links:
    """Symmetrise: the intersection, grown inside the union while words are without a link.

    grow-diag  from every link, by target word and then by source word, step to its eight neighbours
               and add those of the union that link a word without links; until nothing is added
    final      add the links of `forward`, then of `backward`, that link a word without links

    Both directions are source-target pairs. Och & Ney (2003), section 4 (the refined
    method); Koehn et al. (2005).
    """
    either = union(forward, backward).possible
    links = set(intersect(forward, backward).possible)
    sources, targets = {i for i, _ in links}, {j for _, j in links}

    def add(link: Link) -> bool:
        """Add a link if one of its words has none; whether it was added."""
        if link[0] in sources and link[1] in targets:
            return False
        links.add(link)
        sources.add(link[0])
        targets.add(link[1])
        return True

    grown = True
    while grown:
        grown = False
        for i, j in sorted(either, key=_by_target):
            # Links found on the way are stepped from too, if their turn is still to come.
            if (i, j) in links:
                for source_step, target_step in _NEIGHBOURS:
                    near = (i + source_step, j + target_step)
                    grown |= near in either and add(near)
    for direction in (forward, backward):
        for link in sorted(direction.possible, key=_by_target):
            add(link)
    return Links(links)


def _by_target(link: Link) -> Link:
    return link[1], link[0]
