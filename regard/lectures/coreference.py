"""The animal didn't cross the street because it was too tired: what does *it* refer to?

Two heads look from *it* over the sentence. Nobody trained them: each word has a few features set by
hand, each head asks for some of them, and the weights follow. Change *tired* to *wide* and *it*
turns from the animal to the street.
"""

from __future__ import annotations

from torch import Tensor

from regard.attention import Attended, Attention, Dot, Look
from regard.lectures.catalog import TITLES
from regard.lectures.formatting import decimal, double, table, to_list
from regard.lectures.lesson import MODELS, Lesson, step

FEATURES = ("thing", "alive", "place", "state")
WORDS = ("The", "animal", "didn't", "cross", "the", "street", "because", "it", "was", "too")
FEATURES_OF = {
    "animal": ("thing", "alive"),
    "street": ("thing", "place"),
    "tired": ("state",),
    "wide": ("state",),
}
FEATURE_ASKED = {"tired": "alive", "wide": "place"}
"""What a thing has to be, for the adjective to be said of it."""
HEADS = ("what it is", "how it is")
STRENGTH = 3.0


def features(*names: str) -> list[float]:
    """1 for each named feature, 0 for the others."""
    return [float(feature in names) for feature in FEATURES]


def queries_of_it(adjective: str) -> Tensor:
    """The query of *it* in each head, (head, feature)."""
    return STRENGTH * double([features("thing", FEATURE_ASKED[adjective]), features("state")])


def attend(adjective: str) -> Attended:
    """Attention of the two heads of *it*, in the sentence that ends in `adjective`."""
    words = double([features(*FEATURES_OF.get(word, ())) for word in [*WORDS, adjective]])
    keys = words.expand(1, len(HEADS), -1, -1)  # (batch, head, word, feature)
    queries = queries_of_it(adjective).view(1, len(HEADS), 1, len(FEATURES))
    return Attention(Dot())(queries, keys, keys)


def lesson() -> Lesson:
    tired, wide = attend("tired"), attend("wide")
    return Lesson(
        name="coreference",
        title=TITLES["coreference"],
        source=MODELS,
        steps=(
            step(
                "The animal didn't cross the street because it was too tired. Which words does it "
                "attend to? This model is set by hand, not trained: its words have "
                f"{len(FEATURES)} features.",
                *(f"{word}: {', '.join(names)}" for word, names in FEATURES_OF.items()),
                "all other words: none",
            ),
            step(
                f"{len(HEADS)} heads ask from it, each for features, with a strength of "
                f"{STRENGTH:g}. One looks for what it is: a thing that can be tired, and so is "
                "alive. The other looks for how it is.",
                *table(
                    [
                        ("", *FEATURES),
                        *(
                            (name, *(decimal(number) for number in query))
                            for name, query in zip(
                                HEADS, queries_of_it("tired").tolist(), strict=True
                            )
                        ),
                    ]
                ),
            ),
            step(
                "Scores, softmax, weights: it is the animal, and it is tired.",
                *_rows("tired", tired),
            ),
            step(
                "Say wide for tired and nothing else changes but the question: what can be wide is "
                "a place. Now it is the street.",
                *_rows("wide", wide),
            ),
            step(
                "A trained model finds features and questions of its own, and its maps are rarely "
                "as clean as these.",
            ),
        ),
        numbers={
            "features": list(FEATURES),
            "heads": list(HEADS),
            "strength": STRENGTH,
            "set_by_hand": True,
            "tired": _numbers("tired", tired),
            "wide": _numbers("wide", wide),
        },
        looks=tuple(
            Look.of(
                attended,
                path=f"it was too {adjective}",
                queries=["it"],
                keys=[*WORDS, adjective],
                heads=HEADS,
            )
            for adjective, attended in (("tired", tired), ("wide", wide))
        ),
    )


def _weights(attended: Attended) -> Tensor:
    return attended.weights[0, :, 0]  # (head, word)


def _rows(adjective: str, attended: Attended) -> tuple[str, ...]:
    rows = zip(HEADS, _weights(attended).tolist(), strict=True)
    return table([("", *WORDS, adjective), *((n, *(f"{w:.3f}" for w in row)) for n, row in rows)])


def _numbers(adjective: str, attended: Attended) -> dict[str, object]:
    words = [*WORDS, adjective]
    best = _weights(attended).argmax(dim=-1).tolist()
    return {
        "words": words,
        "scores": to_list(attended.scores[0, :, 0]),
        "weights": to_list(_weights(attended)),
        "looks_most_at": dict(zip(HEADS, (words[i] for i in best), strict=True)),
    }
