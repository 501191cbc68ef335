"""A model of a file is the one that was saved, and one that does not fit is never built."""

import random

import numpy as np
import pytest
import torch

import regard
from regard.attention import ALiBi, MultiHead, RelativeBias
from regard.checkpoints import memory, weights
from regard.checkpoints.folders import new_folder, write_manifest, write_tensors
from regard.checkpoints.reading import Folder, read_tensors
from regard.checkpoints.weights import load_model
from regard.data.batches import (
    Bits,
    LabelledDocuments,
    LabelledTexts,
    MaskedTexts,
    Pairs,
    Spellings,
    Words,
)
from regard.models import catalog

SMALL = "hidden_size = 12\n"
GPT = "model_size = 12\nheads = 3\nlayers = 2\nlongest = 19\n"
MODELS = {
    "window": ("window", "direct = true"),
    "rnn": ("rnn", f'{SMALL}kind = "rnn"'),
    "lstm, tied": ("rnn", f"{SMALL}tied = true"),
    "gru, its layers' own way": ("rnn", f'{SMALL}kind = "gru"'),
    "attentive": ("attentive-rnn", f"{SMALL}window = 3"),
    "key-value-predict": (
        "attentive-rnn",
        f'{SMALL}split = "key-value-predict"\nscore = "general"',
    ),
    "gpt": ("gpt2", GPT),
    "post-norm": ("gpt2", f'{GPT}norm = "post"\nbias = false\ntied = false'),
    "sinusoidal": ("gpt2", f'{GPT}positions = "sinusoidal"'),
    "rotary": ("gpt2", f'{GPT}positions = "rotary"'),
    "backpack": ("backpack", f"{GPT}senses = 2"),
    "bahdanau": ("bahdanau", f"{SMALL}embedding_size = 5\nattention_size = 7\nreadout_size = 3"),
    "seq2seq": ("seq2seq", f"{SMALL}embedding_size = 5\nlayers = 2"),
    "luong": ("luong", f"{SMALL}embedding_size = 5\nlayers = 2"),
    "transformer": ("transformer", GPT),
    "transformer, pre-norm": (
        "transformer",
        f'{GPT}norm = "pre"\ntied = false\npositions = "rotary"',
    ),
    "dan": ("dan", f"{SMALL}embedding_size = 5\nlayers = 2"),
    "han": ("han", f"{SMALL}embedding_size = 5\nattention_size = 3"),
    "lstmn": ("lstmn", f"{SMALL}embedding_size = 5"),
    "elmo": ("elmo", f"{SMALL}projection_size = 5\nfilters = [[1, 2], [3, 5]]"),
    "bert": ("bert", GPT),
    "ntm": ("ntm", "controller_size = 5\nslots = 7\nslot_size = 3"),
}

TRANSLATORS = ("Seq2Seq", "Bahdanau", "Luong", "Transformer")


def logits(model):
    ids = torch.randint(11, (2, 7), generator=torch.Generator().manual_seed(3))
    mask = torch.ones_like(ids, dtype=torch.bool)
    batches = {
        **dict.fromkeys(TRANSLATORS, Pairs(ids, mask, ids, ids, mask)),
        "DAN": LabelledTexts(ids, mask, ids[:, 0]),
        "HAN": LabelledDocuments(ids.unsqueeze(1), mask.unsqueeze(1), ids[:, 0]),
        "ELMo": Spellings(ids.unsqueeze(-1).expand(-1, -1, 50), ids, mask),
        "Bert": MaskedTexts(ids, mask),
        "NTM": Bits(ids.unsqueeze(-1).expand(-1, -1, 9).float(), ids, mask),
    }
    with torch.no_grad():
        return model(batches.get(type(model).__name__, Words(ids, ids, mask)))


def test_every_neural_model_of_the_catalog_is_among_these():
    # N-grams have no weights; the columns of a table, which an mlp needs, come from training.
    without = {"ngram", "mlp"}
    assert {name for name, _ in MODELS.values()} | without == set(catalog.MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_answers_like_the_saved_one_to_the_last_bit(name, folder):
    run, model = folder(*MODELS[name])
    loaded = regard.load(run).model
    assert not loaded.training
    assert torch.equal(logits(loaded), logits(model))
    for (path, mine), (_, theirs) in zip(
        loaded.named_parameters(), model.named_parameters(), strict=True
    ):
        assert torch.equal(mine, theirs), path
        assert mine.requires_grad


@pytest.mark.parametrize("name", MODELS)
def test_loading_draws_no_random_number(name, folder):
    run, _ = folder(*MODELS[name])
    torch.manual_seed(5)
    before = torch.get_rng_state(), np.random.get_state(), random.getstate()
    regard.load(run)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert all(np.array_equal(a, b) for a, b in zip(np.random.get_state(), before[1], strict=True))
    assert random.getstate() == before[2]


@pytest.mark.parametrize("position", [ALiBi(3), RelativeBias(3)])
def test_whatever_a_module_works_out_for_itself_is_right_after_loading(position, tmp_path):
    def make():
        return MultiHead(12, 3, position=type(position)(3))

    model = make()
    with new_folder(tmp_path / "run") as run:
        write_tensors(run / "model.safetensors", model.state_dict())
    loaded = load_model(make, Folder(tmp_path / "run"), "model.safetensors")
    vectors = torch.randn(2, 5, 12)
    assert torch.equal(loaded(vectors), model(vectors))


def changed(run, change):
    tensors = read_tensors(run / "model.safetensors")
    change(tensors)
    write_tensors(run / "model.safetensors", tensors)
    write_manifest(run)


def refused(run, words):
    with pytest.raises(ValueError, match=words) as told:
        regard.load(run)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 1000
    return str(told.value)


@pytest.fixture
def gpt(folder, monkeypatch):
    run, _ = folder("gpt2", GPT)
    monkeypatch.setattr(weights, "build_unfilled", lambda make: pytest.fail("it was built"))
    return run


def setting(run, line):
    """Another setting of the model, in a folder that is otherwise whole."""
    recipe = (run / "recipe.toml").read_text()
    name = line.partition(" ")[0]
    kept = [each for each in recipe.splitlines() if not each.startswith(f"{name} ")]
    place = kept.index("[training]")
    (run / "recipe.toml").write_text("\n".join([*kept[:place], line, *kept[place:]]))
    write_manifest(run)


def test_a_recipe_larger_than_its_weights_is_refused_before_a_model_is_built(gpt):
    setting(gpt, "model_size = 9_000_000")
    told = refused(gpt, "the weights are not those of its recipe: embedding.weight is float32")
    assert "float32 (13, 12) and should be float32 (13, 9000000)" in told
    assert "and 26 more" in told


@pytest.mark.parametrize(
    "line",
    [
        *("layers = 1_000_000_000", "layers = 9223372036854775807", "layers = 1", "layers = 3"),
        *("longest = 9223372036854775807", "feedforward_size = 4_000_000_000_000_000"),
        *("model_size = 9223372036854775806", "layers = 1_000_000_000_000_000_000_000"),
        *("vocabulary_size = 12", "heads = 0", 'positions = "rotary"', "tied = 7"),
    ],
)
def test_a_model_that_cannot_be_that_of_the_file_is_refused_in_one_line(line, gpt):
    setting(gpt, line)
    refused(gpt, ".+")


def test_a_table_that_is_in_no_file_counts_too(folder, monkeypatch):
    run, _ = folder("gpt2", f'{GPT}positions = "sinusoidal"')
    monkeypatch.setattr(weights, "build_unfilled", lambda make: pytest.fail("it was built"))
    setting(run, "longest = 1_000_000_000_000")
    refused(run, r"run needs 384\.0 TB of memory, and .+ is available")


def test_weights_larger_than_the_memory_are_refused(gpt, tmp_path, monkeypatch):
    (tmp_path / "meminfo").write_text("MemAvailable: 7 kB\n")
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    refused(gpt, r"model\.safetensors needs [\d,]+ bytes of memory, and 7,168 bytes is available")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.pop("norm.weight"), "norm.weight is missing"),
        (lambda t: t.update(more=torch.zeros(1)), "'more' is not one of its weights"),
        (lambda t: t.update({"a" * 9999: torch.zeros(1)}), "'aaa.* is not one of its weights"),
        (
            lambda t: t.update({"norm.weight": torch.zeros(1, 12)}),
            r"norm.weight is float32 \(1, 12\) and should be float32 \(12,\)",
        ),
        (
            lambda t: t.update({"norm.weight": torch.zeros(12, dtype=torch.int32)}),
            r"norm.weight is int32 \(12,\) and should be float32 \(12,\)",
        ),
        (
            lambda t: t.update({"norm.weight": torch.zeros(12).to(torch.float8_e5m2)}),
            r"norm.weight is float8_e5m2 \(12,\) and should be float32 \(12,\)",
        ),
        (lambda t: t.clear(), "embedding.weight is missing, .*, and 26 more"),
    ],
)
def test_weights_of_another_model_are_refused_with_the_first_that_differ(change, words, gpt):
    changed(gpt, change)
    refused(gpt, words)


def test_weights_that_were_halved_are_read_as_they_are(folder):
    run, model = folder("rnn", SMALL)
    changed(run, lambda t: t.update({k: v.bfloat16() for k, v in t.items()}))
    assert torch.equal(logits(regard.load(run).model), logits(model.bfloat16().float()))
