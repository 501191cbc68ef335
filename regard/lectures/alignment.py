"""The poor don't have any money / Les pauvres sont démunis: who is translated by whom?

Four English words and two French ones say the same thing together, and no word alone stands for
any other: the alignment is many to many. As attention it is a map whose rows share out one.

Brown et al. (1993), "The mathematics of statistical machine translation", section 2.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.attention import Attended, Attention, Dot, Look, Proportional
from regard.lectures.catalog import TITLES
from regard.lectures.formatting import double, fraction, table, to_list
from regard.lectures.lesson import MECHANISMS, Lesson, step

ENGLISH = ("The", "poor", "don't", "have", "any", "money")
FRENCH = ("Les", "pauvres", "sont", "démunis")
LINKS = (
    ("The", "Les"),
    ("poor", "pauvres"),
    *((english, french) for english in ENGLISH[2:] for french in FRENCH[2:]),
)


def link_matrix() -> Tensor:
    """1 where two words are linked, else 0, (English, French)."""
    return double([[float((e, f) in LINKS) for f in FRENCH] for e in ENGLISH])


def attend(links: Tensor) -> Attended:
    """Attention of each column's word, spread evenly over the rows it is linked to."""
    words = torch.eye(links.shape[1], dtype=links.dtype)  # a query says which word it is
    return Attention(Dot(), Proportional())(words, links, links)


def lesson() -> Lesson:
    links = link_matrix()
    french, english = attend(links), attend(links.T)
    pairs = [(ENGLISH.index(e), FRENCH.index(f)) for e, f in LINKS]
    return Lesson(
        name="alignment",
        title=TITLES["alignment"],
        source=MECHANISMS,
        steps=(
            step(
                "Six English words and four French ones. Les is The and pauvres is poor; but "
                "“don't have any money” and “sont démunis” mean the same only as wholes, so each "
                "of the four is linked to each of the two.",
                *table(
                    [
                        ("", *FRENCH),
                        *(
                            (word, *("■" if link else "·" for link in row))
                            for word, row in zip(ENGLISH, links.tolist(), strict=True)
                        ),
                    ]
                ),
                "pairs " + " ".join(f"{e}-{f}" for e, f in pairs),
            ),
            step(
                "A decoder that says the French words would look back so, each row adding up to 1.",
                *_rows(FRENCH, ENGLISH, french),
            ),
            step(
                "The other way round, each English word looks at one French word or at two.",
                *_rows(ENGLISH, FRENCH, english),
            ),
            step(
                "These links are what people say, normalised; a trained translator draws such a "
                "map by itself, without ever being told about alignments.",
            ),
        ),
        numbers={
            "english": list(ENGLISH),
            "french": list(FRENCH),
            "links": to_list(links),
            "pairs": [list(pair) for pair in pairs],
            "french_to_english": to_list(french.weights),
            "english_to_french": to_list(english.weights),
        },
        looks=(
            Look.of(
                french, path="French looks at English", kind="cross", queries=FRENCH, keys=ENGLISH
            ),
            Look.of(
                english, path="English looks at French", kind="cross", queries=ENGLISH, keys=FRENCH
            ),
        ),
    )


def _rows(queries: tuple[str, ...], keys: tuple[str, ...], read: Attended) -> tuple[str, ...]:
    rows = zip(queries, read.weights.tolist(), strict=True)
    return table([("", *keys), *((word, *(fraction(w) for w in row)) for word, row in rows)])
