"""Recipes on a small text, for whole journeys."""

import random

import pytest

RECIPES = {
    "lstm": """
[model]
name = "rnn"
hidden_size = 24
dropout = 0.2
[training]
feed = "columns"
steps = 120
batch = 4
length = 6
rate = 0.01
evaluate_every = 40
save_every = 3
log_every = 5
""",
    "transformer": """
[model]
name = "gpt2"
layers = 2
heads = 2
model_size = 16
longest = 16
dropout = 0.1
[training]
feed = "windows"
steps = 120
batch = 4
length = 12
rate = 0.01
evaluate_every = 40
save_every = 3
log_every = 5
""",
}


@pytest.fixture
def recipe(tmp_path):
    """Writes a recipe by name and gives its path."""
    words = ["the", "a", "cat", "dog", "bird", "sees", "hears", "near", "far", "old", "and", "or"]
    chance = random.Random(1)
    lines = [" ".join(chance.choices(words, k=chance.randint(3, 9))) for _ in range(120)]
    (tmp_path / "train.txt").write_text("\n".join(lines[:100]) + "\n")
    (tmp_path / "valid.txt").write_text("\n".join(lines[100:]) + "\n")

    def write(name):
        path = tmp_path / f"{name}.toml"
        head = 'seed = 1\n[task]\nkind = "language-model"\n[data]\n'
        path.write_text(f'{head}train = "train.txt"\nvalid = "valid.txt"\n{RECIPES[name]}')
        return path

    return write


@pytest.fixture(autouse=True)
def _data_beside_the_recipe(monkeypatch):
    """Whoever runs the tests may have data of their own; these recipes bring theirs."""
    monkeypatch.delenv("REGARD_DATA", raising=False)
