"""Hugging Face folders from anybody: what is wrong is one line, and nothing in them is run."""

import json
import os
import pickle
import zipfile

import pytest
import torch
from safetensors.torch import load_file, save_file

import regard
from regard.checkpoints.hugging_face.catalog import TABLES
from regard.checkpoints.hugging_face.table import Setting, match_layer
from regard.models.catalog import entry
from regard.models.outline import outline
from regard.running import import_hugging_face, verify

CONFIG = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "vocab_size": 11,
    "n_positions": 13,
    "n_embd": 6,
    "n_layer": 2,
    "n_head": 3,
}


@pytest.fixture
def folder(tmp_path):
    """A GPT-2 as transformers would save it, written down by hand."""
    place = tmp_path / "gpt2"
    place.mkdir()
    (place / "config.json").write_text(json.dumps(CONFIG))
    shapes = {"wte.weight": (11, 6), "wpe.weight": (13, 6), "ln_f.weight": (6,), "ln_f.bias": (6,)}
    for n in (0, 1):
        for name, shape in {
            "ln_1": (6,),
            "attn.c_attn": (6, 18),
            "attn.c_proj": (6, 6),
            "ln_2": (6,),
            "mlp.c_fc": (6, 24),
            "mlp.c_proj": (24, 6),
        }.items():
            shapes |= {f"h.{n}.{name}.weight": shape, f"h.{n}.{name}.bias": shape[-1:]}
    tensors = {f"transformer.{name}": torch.randn(shape) for name, shape in shapes.items()}
    save_file(tensors, place / "model.safetensors")
    return place


def change_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def change_tensors(folder, change):
    path = folder / "model.safetensors"
    save_file(change(dict(load_file(path))), path)


def complaint(folder):
    with pytest.raises(ValueError) as told:
        regard.load(folder)
    assert "\n" not in str(told.value)
    return str(told.value)


def test_the_folder_is_sound(folder):
    assert regard.load(folder).logits(torch.tensor([[1, 2]])).shape == (1, 2, 11)


def test_a_folder_that_is_no_model_says_what_it_lacks(tmp_path):
    told = complaint(tmp_path)
    assert "manifest.json is missing" in told and "config.json" in told


def test_an_architecture_we_do_not_have_is_told_which_we_have(folder):
    change_config(folder, architectures=["LlamaForCausalLM"], model_type="llama")
    told = complaint(folder)
    assert "architectures (['LlamaForCausalLM']) is none that regard has: GPT2LMHeadModel" in told
    assert "BertForMaskedLM" in told
    change_config(folder, architectures=None)
    assert "model_type ('llama') is none that regard has" in complaint(folder)
    change_config(folder, model_type=None)
    assert "neither architectures nor model_type names one of ours: GPT2" in complaint(folder)


@pytest.mark.parametrize("named", [[7], ["GPT2ForTokenClassification"], {"a": 1}, [["x"]]])
def test_odd_architectures_are_no_crash(folder, named):
    change_config(folder, architectures=named, model_type="x")
    assert "is none that regard has" in complaint(folder)


def test_missing_and_surplus_tensors_are_listed_by_their_own_names(folder):
    def change(tensors):
        del tensors["transformer.h.1.attn.c_attn.weight"], tensors["transformer.ln_f.bias"]
        return tensors | {"transformer.h.2.ln_1.weight": torch.ones(6), "score": torch.ones(1)}

    change_tensors(folder, change)
    told = complaint(folder)
    assert "missing tensors: h.1.attn.c_attn.weight, ln_f.bias" in told
    assert "surplus tensors: score, h.2.ln_1.weight" in told


def test_many_missing_tensors_are_counted(folder):
    change_config(folder, n_layer=9)
    assert "missing tensors: h.2.ln_1.weight" in complaint(folder)
    assert "and 72 more" in complaint(folder)


def test_wrong_shapes_are_named_with_both(folder):
    change_tensors(folder, lambda t: t | {"transformer.h.0.mlp.c_fc.weight": torch.ones(24, 6)})
    told = "h.0.mlp.c_fc.weight is float32 (24, 6) and should be (6, 24)"
    assert told in complaint(folder)


def test_numbers_that_are_no_floats_are_wrong(folder):
    change_tensors(folder, lambda t: t | {"transformer.ln_f.bias": torch.ones(6, dtype=torch.int8)})
    assert "ln_f.bias is int8 (6,) and should be (6,)" in complaint(folder)


def test_a_tensor_under_two_names_is_refused(folder):
    change_tensors(folder, lambda t: t | {"wte.weight": torch.ones(11, 6)})
    assert "wte.weight is there twice, with 'transformer.' and without" in complaint(folder)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"n_embd": "6"}, "n_embd ('6') must be a number"),
        ({"n_embd": True}, "n_embd (True) must be a number"),
        ({"n_layer": None}, "n_layer (None) must be a number"),
        ({"n_head": 4}, "model_size (6) must be a multiple of heads (4)"),
        ({"n_layer": 0}, "layers (0) must be at least 1"),
        ({"activation_function": "snake"}, "activation_function ('snake') must be one of gelu_new"),
        ({"activation_function": ["relu"]}, "activation_function (['relu']) must be one of"),
        ({"add_cross_attention": True}, "add_cross_attention (True) must be False"),
        ({"scale_attn_weights": "no"}, "scale_attn_weights ('no') must be true or false"),
        ({"resid_pdrop": 2.0}, "dropout (2.0) must be at least 0"),
        ({"n_layer": 10**12}, "missing tensors"),
        ({"vocab_size": 10**15}, "is float32 (11, 6) and should be (1000000000000000, 6)"),
        ({"vocab_size": 10**90}, "no model has sizes like these"),
        ({"n_inner": 1.5}, "feedforward_size"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_named(folder, setting, told):
    change_config(folder, **setting)
    found = complaint(folder)
    if setting == {"n_layer": 10**12}:  # whichever of the two is noticed first
        assert told in found or "more than" in found
    else:
        assert told in found


@pytest.mark.parametrize("content", ["", "[]", '"x"', "{", "[" * 100_000, "\ud800"])
def test_a_config_that_is_no_table_is_refused(folder, content):
    (folder / "config.json").write_bytes(content.encode("utf-8", "surrogatepass"))
    assert "config.json" in complaint(folder)


def test_a_folder_without_weights_says_so(folder):
    (folder / "model.safetensors").unlink()
    assert "has no weights: model.safetensors, pytorch_model.bin" in complaint(folder)


def test_a_damaged_file_is_named(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-7])
    assert "model.safetensors is damaged" in complaint(folder)


class Harm:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_pickle_that_runs_something_is_refused_by_the_restricted_loader(folder, zipped, tmp_path):
    harmed = tmp_path / "harmed"
    (folder / "model.safetensors").unlink()
    path = folder / "pytorch_model.bin"
    torch.save({"wte.weight": Harm(harmed)}, path, _use_new_zipfile_serialization=zipped)
    told = complaint(folder)
    assert "restricted loader refuses it" in told and "weights_only" not in told
    path.write_bytes(pickle.dumps({"wte.weight": Harm(harmed)}))
    assert "restricted loader refuses it" in complaint(folder)
    assert not harmed.exists()


def test_a_zip_that_unpacks_to_more_than_there_is_memory_for_is_refused(folder, monkeypatch):
    (folder / "model.safetensors").unlink()
    path = folder / "pytorch_model.bin"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data/0", bytes(50_000_000))
    monkeypatch.setattr("regard.checkpoints.memory.available_memory", lambda: 10_000_000)
    assert "needs 50.0 MB of memory" in complaint(folder)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ([torch.ones(2)], "holds a list, not tensors by their names"),
        ({"wte.weight": {"a": 1}}, "'wte.weight' is a dict, no tensor"),
        ({"wte.weight": torch.ones(11, 6).to_sparse()}, "is not stored number by number"),
    ],
)
def test_a_pickle_of_something_else_is_named(folder, content, told):
    (folder / "model.safetensors").unlink()
    torch.save(content, folder / "pytorch_model.bin")
    assert told in complaint(folder)


def test_a_pickle_cut_short_is_refused(folder):
    (folder / "model.safetensors").unlink()
    path = folder / "pytorch_model.bin"
    torch.save({"wte.weight": torch.ones(11, 6)}, path)
    whole = path.read_bytes()
    for size in (0, 1, 30, len(whole) // 2, len(whole) - 3):
        path.write_bytes(whole[:size])
        assert "pytorch_model.bin" in complaint(folder)


def shard(folder, names):
    """Replace the weights by an index that names these files."""
    (folder / "model.safetensors").rename(folder / "part.safetensors")
    index = {"weight_map": {f"tensor-{n}": name for n, name in enumerate(names)}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


@pytest.mark.parametrize(
    "name", ["../part.safetensors", "/etc/passwd", "a/b.safetensors", "part.bin", "a\n.safetensors"]
)
def test_an_index_names_files_of_its_folder_only(folder, name):
    shard(folder, ["part.safetensors", name])
    assert "in its folder" in complaint(folder)


def test_an_index_that_names_missing_files_or_none_is_refused(folder):
    shard(folder, ["part.safetensors", "more.safetensors"])
    assert "more.safetensors is missing" in complaint(folder)
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {}}')
    assert "names 0 files" in complaint(folder)
    (folder / "model.safetensors.index.json").write_text("{}")
    assert "has no weight_map" in complaint(folder)


def test_links_out_of_the_folder_are_not_followed(folder, tmp_path):
    path = folder / "model.safetensors"
    path.rename(tmp_path / "elsewhere.safetensors")
    path.symlink_to(tmp_path / "elsewhere.safetensors")
    assert "is a link that leads out of its folder" in complaint(folder)


def test_links_inside_and_those_of_the_hub_s_cache_are_followed(folder, tmp_path):
    """models--x/snapshots/abc/model.safetensors → ../../blobs/123"""
    cache = tmp_path / "models--x"
    (cache / "snapshots").mkdir(parents=True)
    (cache / "blobs").mkdir()
    snapshot = cache / "snapshots" / "abc"
    folder.rename(snapshot)
    for n, path in enumerate(list(snapshot.iterdir())):
        path.rename(cache / "blobs" / str(n))
        path.symlink_to(f"../../blobs/{n}")
    assert regard.load(snapshot).logits(torch.tensor([[1]])).shape == (1, 1, 11)


def test_links_in_a_circle_and_pipes_end(folder):
    path = folder / "model.safetensors"
    path.unlink()
    path.symlink_to(path.name)
    assert "has no weights" in complaint(folder)
    path.unlink()
    os.mkfifo(path)
    assert "is not a regular file" in complaint(folder)


def test_text_commands_without_a_tokenizer_say_what_is_missing(folder):
    run = regard.load(folder)
    for ask in (
        lambda: run.generate("hello"),
        lambda: run.look("hello"),
        lambda: run.perplexity("x"),
    ):
        with pytest.raises(ValueError, match=r"there is no tokenizer in this run.*tokenizer\.json"):
            ask()


@pytest.mark.parametrize("kind", ["BertForPreTraining", "BertForSequenceClassification", "GPT2"])
def test_a_model_without_words_is_verified_all_the_same(kind, tmp_path):
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 29, "hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2}
    if kind == "GPT2":
        config = transformers.GPT2Config(vocab_size=29, n_embd=12, n_layer=1, n_head=2)
        model = transformers.GPT2LMHeadModel(config)
    else:
        model = getattr(transformers, kind)(transformers.BertConfig(**sizes))
    model.save_pretrained(tmp_path / "theirs")
    run = import_hugging_face(tmp_path / "theirs", tmp_path / "run")
    *proofs, resumed = verify(run)
    assert proofs[-1].claim == "a batch of 3 = 3 batches of 1"
    assert all(proof.holds and not proof.untried for proof in proofs)
    assert "data.train is missing" in resumed.untried


def test_words_beyond_the_table_are_refused(folder):
    tokens = {token: n for n, token in enumerate("abcdefghijklmnop")}
    model = {"type": "WordLevel", "vocab": tokens, "unk_token": "a"}
    parts = dict.fromkeys(("normalizer", "pre_tokenizer", "post_processor", "decoder"))
    content = {"version": "1.0", "added_tokens": [], "model": model, **parts}
    (folder / "tokenizer.json").write_text(json.dumps(content))
    assert "vocabulary_size (11) must be 16 or more" in complaint(folder)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.model)
def test_a_table_names_every_weight_of_its_model_once_and_every_setting(table):
    settings = {s.ours: s.default for s in table.settings if s.values is None}
    known = {field for field in entry(table.model).config.__dataclass_fields__}
    assert settings.keys() <= known
    for task in {architecture.task for architecture in table.architectures}:
        sizes = {"vocabulary_size": 7, "layers": 2}
        sizes |= {"classes": 3} if task == "classification" else {}
        make = entry(table.model).model(task)
        model = outline(lambda make=make, sizes=sizes: make(entry(table.model).config(**sizes)))
        for name, _ in model.named_parameters():
            rules = [rule for rule in table.weights if match_layer(rule.ours, name) is not None]
            assert len(rules) == 1, name


def test_a_setting_reads_back_what_it_writes():
    setting = Setting("activation", "act", "gelu_new", {"gelu_new": "tanh", "gelu_fast": "tanh"})
    assert setting.read({}) == setting.read({"act": "gelu_fast"}) == "tanh"
    assert setting.write({"activation": "tanh"}) == "gelu_new"
    with pytest.raises(ValueError, match=r"activation \('relu'\) has no name there"):
        setting.write({"activation": "relu"})


@pytest.mark.parametrize(
    ("pattern", "name", "layer"),
    [
        ("h.{}.ln", "h.3.ln", "3"),
        ("h.{}.ln", "h.12.ln", "12"),
        ("h.{}.ln", "h.03.ln", None),
        ("h.{}.ln", "h..ln", None),
        ("h.{}.ln", "h.3.ln_1", None),
        ("h.{}.ln", "h.3.x.ln", None),
        ("ln", "ln", ""),
        ("ln", "ln_1", None),
    ],
)
def test_numbers_of_layers_are_read_out_of_names(pattern, name, layer):
    assert match_layer(pattern, name) == layer
