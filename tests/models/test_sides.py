"""Every attention of every model says what it looks from and at."""

import pytest

from regard.attention import kind_of, sides_of
from regard.models.catalog import MODELS, build

SMALL = {
    "vocabulary_size": 11,
    "source_vocabulary_size": 11,
    "classes": 3,
    "hidden_size": 6,
    "model_size": 6,
    "heads": 2,
    "layers": 2,
    "inputs": 5,
    "outputs": 3,
    "senses": 3,
}
EXPECTED = {
    "attentive-rnn": {"attention": "self"},
    "gpt2": {"layers.0.attention": "self", "layers.1.attention": "self"},
    "bert": {"layers.0.attention": "self", "layers.1.attention": "self"},
    "backpack": {
        "layers.0.attention": "self",
        "layers.1.attention": "self",
        "sense_weights.attention": "senses",
    },
    "bahdanau": {"decoder.attention": "cross"},
    "luong": {"decoder.attention": "cross"},
    "transformer": {
        f"{path}.layers.{layer}.{part}": kind
        for path, part, kind in (
            ("encoder", "attention", "self"),
            ("decoder", "attention", "self"),
            ("decoder", "cross_attention", "cross"),
        )
        for layer in range(2)
    },
    "lstmn": {"layers.0.attention": "self", "layers.1.attention": "self"},
    "han": {"words.attention": "pool", "sentences.attention": "pool"},
    "ntm": {"write.attention": "memory", "read.attention": "memory"},
}


@pytest.mark.parametrize("name", [name for name in MODELS if name != "ngram"])
def test_every_attention_of_the_catalog_declares_its_sides(name):
    known = MODELS[name].config.__dataclass_fields__
    for task in MODELS[name].tasks:
        model = build(name, task, **{key: SMALL[key] for key in SMALL if key in known})
        sides = sides_of(model)
        assert {path: kind_of(each) for path, each in sides.items()} == EXPECTED.get(name, {})
        assert None not in sides.values()
