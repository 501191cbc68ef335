"""Tests share their cores with whatever else is running; programs they start inherit it."""

import random

import hypothesis
import pytest

from regard.openmp import spin_briefly

spin_briefly()
hypothesis.settings.register_profile("shared cores", deadline=None)  # slow is not wrong
hypothesis.settings.load_profile("shared cores")

LSTM = """
[model]
name = "rnn"
hidden_size = 11
dropout = 0.3
[training]
feed = "columns"
steps = 12
batch = 3
length = 5
rate = 0.01
clip = 1.0
evaluate_every = 4
save_every = 1
log_every = 2
keep = 3
"""
TRANSFORMER = """
[model]
name = "gpt2"
layers = 2
heads = 2
model_size = 12
longest = 8
dropout = 0.2
[training]
feed = "windows"
steps = 12
batch = 3
length = 8
rate = 0.01
accumulate = 2
evaluate_every = 5
save_every = 2
log_every = 3
schedule = { kind = "cosine", warmup = 2 }
"""
BACKPACK = TRANSFORMER.replace('"gpt2"', '"backpack"\nsenses = 3')
MODELS = {"lstm": LSTM, "transformer": TRANSFORMER, "backpack": BACKPACK}


@pytest.fixture
def written(tmp_path):
    """Writes a recipe for a small text and gives its path."""
    words = [
        "the",
        "a",
        "cat",
        "dog",
        "bird",
        "sees",
        "hears",
        "near",
        "far",
        "old",
        "small",
        "and",
    ]
    chance = random.Random(1)
    lines = [" ".join(chance.choices(words, k=chance.randint(3, 9))) for _ in range(60)]
    (tmp_path / "train.txt").write_text("\n".join(lines[:50]) + "\n")
    (tmp_path / "valid.txt").write_text("\n".join(lines[50:]) + "\n")

    def write(model: str, extra: str = "", valid: bool = True):
        path = tmp_path / f"{model}.toml"
        head = 'seed = 1\n[task]\nkind = "language-model"\n[data]\ntrain = "train.txt"\n'
        head += 'valid = "valid.txt"\n' if valid else ""
        path.write_text(head + MODELS[model] + extra)
        return path

    return write
