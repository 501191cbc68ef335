"""Restaurants whose popularity follows a rule that is known here, and to be found from examples.

food quality = σ(0.15 (price − 30) − 0.15 (dishes − 30) + 2 [wine])     a short, dear list, and wine
walkable     = a share that depends on the zip code alone
noise        = σ(0.15 (seats − size / 2))                               many seats in little room
popularity   = 20 + 40 food quality + 30 walkable − 25 noise + chance

The three are never told: a model sees the six columns and the popularity.
"""

from __future__ import annotations

import math
from random import Random
from typing import NamedTuple

WALKABLE = {
    "10001": 0.9,
    "10002": 0.1,
    "10003": 0.8,
    "10004": 0.3,
    "10005": 1.0,
    "10006": 0.0,
    "10007": 0.6,
    "10008": 0.2,
}
CHANCE = 2.0
"""The standard deviation of what no rule explains."""
SUBPROBLEMS = {
    "food quality": ("dishes", "price", "wine"),
    "walkable": ("zip",),
    "noise": ("seats", "size"),
}


class Restaurant(NamedTuple):
    """One row; the columns are the fields."""

    dishes: float
    price: float
    wine: str  # yes or no
    zip: str
    seats: float
    size: float  # in square metres
    popularity: float


def make_restaurants(count: int, seed: int, split: str) -> list[Restaurant]:
    """Restaurants that depend on the seed, the split and their place alone."""
    return [_make(Random(f"{seed} {split} {place}")) for place in range(count)]


def hidden_features(place: Restaurant) -> dict[str, float]:
    """What the popularity is made of: food quality, walkable and noise, each from 0 to 1."""
    taste = 0.15 * (place.price - 30) - 0.15 * (place.dishes - 30) + 2 * (place.wine == "yes")
    return {
        "food quality": _sigmoid(taste),
        "walkable": WALKABLE[place.zip],
        "noise": _sigmoid(0.15 * (place.seats - place.size / 2)),
    }


def expected_popularity(place: Restaurant) -> float:
    """The popularity by the rule alone, without chance."""
    features = hidden_features(place)
    good = 40 * features["food quality"] + 30 * features["walkable"]
    return 20 + good - 25 * features["noise"]


def _make(rng: Random) -> Restaurant:
    place = Restaurant(
        dishes=rng.randint(5, 60),
        price=rng.randint(8, 60),
        wine=rng.choice(("no", "yes")),
        zip=rng.choice(tuple(WALKABLE)),
        seats=rng.randint(10, 120),
        size=rng.randint(30, 220),
        popularity=0.0,
    )
    popularity = expected_popularity(place) + rng.gauss(0.0, CHANCE)
    return place._replace(popularity=round(popularity, 2))


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))
