"""Recipes of these tests bring their data."""

import random

import pytest

LABELLED = """
seed = 1
[task]
kind = "classification"
[data]
train = "train.txt"
valid = "valid.txt"
test = "test.txt"
[model]
name = "dan"
embedding_size = 8
hidden_size = 8
layers = 1
[training]
steps = 120
tokens = 60
rate = 0.02
evaluate_every = 30
log_every = 20
"""


@pytest.fixture(autouse=True)
def _data_beside_the_recipe(monkeypatch):
    """Whoever runs the tests may have data of their own; these recipes bring theirs."""
    monkeypatch.delenv("REGARD_DATA", raising=False)


@pytest.fixture
def labelled(tmp_path):
    """A recipe for texts that are good, bad or neither, as their words are."""
    chance = random.Random(1)
    words = {"good": ["fine", "great", "warm"], "bad": ["dull", "empty"], "neither": ["long"]}

    def line():
        label = chance.choice(list(words))
        text = [chance.choice(words[label]), *chance.choices(["a", "film", "is"], k=3)]
        chance.shuffle(text)
        return f"{label} {' '.join(text)}"

    for name, count in (("train", 120), ("valid", 30), ("test", 20)):
        (tmp_path / f"{name}.txt").write_text("\n".join(line() for _ in range(count)) + "\n")
    path = tmp_path / "labelled.toml"
    path.write_text(LABELLED)
    return path
