"""GPT-2 from a Hugging Face folder, against transformers itself."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

import regard
from regard.data.batches import Words
from regard.running import export_hugging_face

transformers = pytest.importorskip("transformers")

IDS = torch.randint(0, 97, (3, 19), generator=torch.Generator().manual_seed(2))
CLOSE = {"atol": 1e-5, "rtol": 0}
CONFIGS = {
    "as published": {},
    "another inner size": {"n_inner": 37},
    "exact gelu": {"activation_function": "gelu"},
    "torch's tanh gelu": {"activation_function": "gelu_pytorch_tanh"},
    "relu": {"activation_function": "relu"},
    "silu": {"activation_function": "silu", "n_inner": 7},
    "scaled by layer": {"scale_attn_by_inverse_layer_idx": True},
    "reordered": {"scale_attn_by_inverse_layer_idx": True, "reorder_and_upcast_attn": True},
    "not scaled": {"scale_attn_weights": False},
    "not scaled but by layer": {
        "scale_attn_weights": False,
        "scale_attn_by_inverse_layer_idx": True,
    },
    "another epsilon": {"layer_norm_epsilon": 1e-2},
    "untied": {"tie_word_embeddings": False},
    "one head": {"n_head": 1, "n_layer": 1},
}


def compare(model, run, ids=IDS):
    with torch.no_grad():
        theirs = model(ids, output_attentions=True)
    assert_close(run.logits(ids), theirs.logits, **CLOSE)
    with regard.watch(run.model) as seen:
        run.logits(ids)
    assert len(theirs.attentions) == len(seen) == model.config.n_layer
    for layer, weights in enumerate(theirs.attentions):
        assert_close(seen[f"layers.{layer}.attention"][0].weights, weights, **CLOSE)


@pytest.mark.parametrize("name", CONFIGS)
def test_logits_and_every_map_are_transformers_own(gpt2, name):
    model, folder = gpt2(**CONFIGS[name])
    compare(model, regard.load(folder))


@pytest.mark.parametrize("name", CONFIGS)
def test_what_is_exported_again_is_the_same_model_there(gpt2, name, tmp_path):
    model, folder = gpt2(**CONFIGS[name])
    assert export_hugging_face(regard.load(folder), tmp_path / "out") == "GPT2LMHeadModel"
    again, report = transformers.GPT2LMHeadModel.from_pretrained(
        tmp_path / "out", output_loading_info=True
    )
    assert not any(report.values())
    for weight, other in zip(again.parameters(), model.parameters(), strict=True):
        assert torch.equal(weight, other)
    with torch.no_grad():
        assert_close(again.eval()(IDS).logits, model(IDS).logits, **CLOSE)


def test_prompts_padded_on_the_left_read_as_there(gpt2):
    model, folder = gpt2()
    run = regard.load(folder)
    rows = [IDS[0].tolist(), IDS[1, :11].tolist(), IDS[2, :2].tolist()]
    batch = Words.prompts(rows, filler=5)
    positions = (batch.mask.long().cumsum(dim=1) - 1).clamp(min=0)
    with torch.no_grad():
        theirs = model(
            batch.inputs,
            attention_mask=batch.mask.long(),
            position_ids=positions,
            output_attentions=True,
        )
        with regard.watch(run.model) as seen:
            ours = run.model(batch)
    assert_close(ours[batch.mask], theirs.logits[batch.mask], **CLOSE)
    for layer, weights in enumerate(theirs.attentions):
        found = seen[f"layers.{layer}.attention"][0].weights
        real = batch.mask[:, None, :, None]  # what padding looks at is nobody's business
        assert_close(found * real, weights * real, **CLOSE)


def test_words_one_by_one_give_the_logits_of_the_whole_text(gpt2):
    model, folder = gpt2(scale_attn_by_inverse_layer_idx=True, n_inner=13)
    run = regard.load(folder)
    state, steps = run.model.start(Words.prompts([[] for _ in IDS])), []
    with torch.no_grad():
        for ids in IDS.unbind(dim=1):
            logits, state = run.model.step(ids, state)
            steps.append(logits)
        theirs = model(IDS).logits
    assert_close(torch.stack(steps, dim=1), theirs, **CLOSE)


def rewrite(folder, change):
    """Save the tensors of a folder again, changed."""
    path = folder / "model.safetensors"
    tensors = change(dict(load_file(path)))
    save_file(tensors, path, metadata={"format": "pt"})


def test_names_without_their_prefix_are_the_same_model(gpt2):
    """As openai-community/gpt2 has them."""
    model, folder = gpt2()
    rewrite(folder, lambda t: {k.removeprefix("transformer."): v for k, v in t.items()})
    compare(model, regard.load(folder))


def test_masks_among_the_weights_are_passed_over(gpt2):
    """As versions before 2023 stored them."""
    model, folder = gpt2()
    mask = torch.ones(1, 1, 40, 40).tril().to(torch.uint8)
    masks = {f"transformer.h.{n}.attn.bias": mask.clone() for n in range(3)}
    masks |= {f"transformer.h.{n}.attn.masked_bias": torch.tensor(-1e4) for n in range(3)}
    rewrite(folder, lambda t: t | masks)
    compare(model, regard.load(folder))


def test_a_head_that_repeats_the_table_is_tied_to_it(gpt2):
    model, folder = gpt2()
    rewrite(folder, lambda t: t | {"lm_head.weight": t["transformer.wte.weight"].clone()})
    run = regard.load(folder)
    assert run.model.output.weight is run.model.embedding.weight
    compare(model, run)


def test_a_head_that_differs_though_the_config_ties_it_counts_as_transformers_counts_it(gpt2):
    _, folder = gpt2()
    rewrite(folder, lambda t: t | {"lm_head.weight": torch.randn(97, 24)})
    model = transformers.GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager").eval()
    run = regard.load(folder)
    assert not run.recipe.model["tied"]
    compare(model, run)


def test_weights_in_several_files_are_put_together(gpt2, tmp_path):
    model, _ = gpt2()
    model.save_pretrained(tmp_path / "shards", max_shard_size="20KB")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 2
    compare(model, regard.load(tmp_path / "shards"))


@pytest.mark.parametrize("zipped", [True, False])
def test_an_old_pytorch_bin_is_read(gpt2, zipped):
    model, folder = gpt2()
    (folder / "model.safetensors").unlink()
    path = folder / "pytorch_model.bin"
    torch.save(model.state_dict(), path, _use_new_zipfile_serialization=zipped)
    compare(model, regard.load(folder))


def test_old_files_in_several_parts_are_read(gpt2):
    model, folder = gpt2()
    (folder / "model.safetensors").unlink()
    state = model.state_dict()
    halves = list(state)[:9], list(state)[9:]
    names = [f"pytorch_model-0000{n}-of-00002.bin" for n in (1, 2)]
    for half, name in zip(halves, names, strict=True):
        torch.save({key: state[key] for key in half}, folder / name)
    index = {key: name for half, name in zip(halves, names, strict=True) for key in half}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": index}))
    compare(model, regard.load(folder))


def test_half_precision_is_read_as_whole(gpt2):
    model, folder = gpt2()
    model.half().save_pretrained(folder)
    run = regard.load(folder)
    assert run.model.embedding.weight.dtype == torch.float32
    compare(model.float(), run)


def test_a_model_without_its_head_predicts_by_its_table(gpt2, tmp_path):
    model, _ = gpt2()
    model.transformer.save_pretrained(tmp_path / "body")
    assert json.loads((tmp_path / "body" / "config.json").read_text())["architectures"] == [
        "GPT2Model"
    ]
    compare(model, regard.load(tmp_path / "body"))


def test_older_names_of_settings_are_known(gpt2):
    """n_ctx beside n_positions, hidden_size for n_embd, no architectures, and keys of others."""
    model, folder = gpt2()
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config |= {"n_ctx": 40, "hidden_size": config.pop("n_embd"), "task_specific_params": {"a": 1}}
    del config["architectures"]
    path.write_text(json.dumps(config))
    compare(model, regard.load(folder))
