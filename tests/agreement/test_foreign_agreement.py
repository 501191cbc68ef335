"""Watching models of transformers on the kernel, against what their eager mode hands out."""

import pytest
import torch
from torch.testing import assert_close

from regard.attention import edit, uniform, watch, zero

transformers = pytest.importorskip("transformers")

BATCH, LENGTH, VOCABULARY = 3, 11, 47
IDS = torch.randint(4, VOCABULARY, (BATCH, LENGTH), generator=torch.Generator().manual_seed(1))
PADDING = torch.arange(LENGTH) < torch.tensor([[LENGTH], [7], [5]])
SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 48,
    "intermediate_size": 29,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
}
SPECIALS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


def build(kind, config, **settings):
    torch.manual_seed(0)
    config = getattr(transformers, config)(**settings, attn_implementation="sdpa")
    return getattr(transformers, kind)(config).eval()


def gpt2(layers=2):
    sizes = {"n_layer": layers, "n_head": 6, "n_embd": 48, "n_positions": 64}
    return build("GPT2LMHeadModel", "GPT2Config", vocab_size=VOCABULARY, **sizes, **SPECIALS)


def llama():
    return build("LlamaForCausalLM", "LlamaConfig", **SMALL, num_key_value_heads=2, **SPECIALS)


def qwen2():
    return build("Qwen2ForCausalLM", "Qwen2Config", **SMALL, num_key_value_heads=3, **SPECIALS)


def bert():
    return build("BertModel", "BertConfig", **SMALL)


def vit():
    sizes = SMALL | {"image_size": 12, "patch_size": 4}
    sizes.pop("vocab_size")
    return build("ViTModel", "ViTConfig", **sizes)


def t5():
    sizes = {"d_model": 48, "d_kv": 8, "d_ff": 29, "num_layers": 2, "num_heads": 6}
    return build(
        "T5ForConditionalGeneration",
        "T5Config",
        vocab_size=VOCABULARY,
        decoder_start_token_id=0,
        **sizes,
    )


def marian():
    sizes = {"d_model": 48, "encoder_layers": 2, "decoder_layers": 2}
    sizes |= {f"{side}_attention_heads": 6 for side in ("encoder", "decoder")}
    sizes |= {f"{side}_ffn_dim": 29 for side in ("encoder", "decoder")}
    specials = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 2}
    return build(
        "MarianMTModel", "MarianConfig", vocab_size=VOCABULARY, max_position_embeddings=64, **sizes,
        **specials,
    )  # fmt: skip


TEXT = {"input_ids": IDS}
PADDED = TEXT | {"attention_mask": PADDING.long()}
PAIR = PADDED | {"decoder_input_ids": IDS[:, :5]}
IMAGE = {"pixel_values": torch.randn(BATCH, 3, 12, 12, generator=torch.Generator().manual_seed(2))}
SIDES = ("encoder_attentions", "decoder_attentions", "cross_attentions")
CASES = {
    "gpt2": (gpt2, TEXT, {"attentions": "transformer.h.{}.attn"}),
    "gpt2 padded": (gpt2, PADDED, {"attentions": "transformer.h.{}.attn"}),
    "bert padded": (bert, PADDED, {"attentions": "encoder.layer.{}.attention.self"}),
    "llama": (llama, TEXT, {"attentions": "model.layers.{}.self_attn"}),
    "llama padded": (llama, PADDED, {"attentions": "model.layers.{}.self_attn"}),
    "qwen2 padded": (qwen2, PADDED, {"attentions": "model.layers.{}.self_attn"}),
    "vit": (vit, IMAGE, {"attentions": "layers.{}.attention"}),
    "t5 padded": (
        t5,
        PAIR,
        {
            "encoder_attentions": "encoder.block.{}.layer.0.SelfAttention",
            "decoder_attentions": "decoder.block.{}.layer.0.SelfAttention",
            "cross_attentions": "decoder.block.{}.layer.1.EncDecAttention",
        },
    ),
    "marian padded": (
        marian,
        PAIR,
        {
            "encoder_attentions": "model.encoder.layers.{}.self_attn",
            "decoder_attentions": "model.decoder.layers.{}.self_attn",
            "cross_attentions": "model.decoder.layers.{}.encoder_attn",
        },
    ),
}


@torch.no_grad()
def eager(model, **inputs):
    model.set_attn_implementation("eager")
    try:
        return model(**inputs, output_attentions=True)
    finally:
        model.set_attn_implementation("sdpa")


def real_rows(weights, inputs, name):
    """Weights of what is no padding: eager mode lets padding look anywhere or nowhere."""
    if "attention_mask" not in inputs or name in ("decoder_attentions", "cross_attentions"):
        return weights
    return weights.transpose(1, 2)[PADDING]


@pytest.mark.parametrize("case", CASES)
@torch.no_grad()
def test_what_is_watched_is_what_eager_mode_hands_out(case):
    make, inputs, paths = CASES[case]
    model = make()
    alone = model(**inputs)
    with watch(model) as seen:
        watched = model(**inputs)
    assert torch.equal(watched[0], alone[0])
    expected = eager(model, **inputs)
    assert len(seen) == 2 * len(paths)
    for name, path in paths.items():
        for layer in range(2):
            (read,) = seen[path.format(layer)]
            ours, theirs = (
                real_rows(weights, inputs, name)
                for weights in (read.weights, expected[name][layer])
            )
            assert_close(ours, theirs, atol=1e-5, rtol=0)
            assert read.one_sequence == (name != "cross_attentions")


@torch.no_grad()
def test_some_heads_and_rows_are_those_of_the_whole():
    for make in (gpt2, llama, t5):
        model = make()
        inputs = PAIR if make is t5 else PADDED
        with watch(model) as seen:
            model(**inputs)
        for (read,) in seen.values():
            part = read.weights_of(heads=[4, 1], rows=[3, 0])
            assert_close(part, read.weights[:, [4, 1]][:, :, [3, 0]])
            assert_close(read.pick(1).weights, read.weights[1:2])


@pytest.mark.parametrize("case", ["gpt2", "llama", "qwen2 padded"])
@torch.no_grad()
def test_a_generated_answer_has_one_map_from_its_prompt_and_steps(case):
    make, _, paths = CASES[case]
    model = make()
    with watch(model) as seen:
        said = model.generate(
            IDS, attention_mask=torch.ones_like(IDS), max_new_tokens=6, do_sample=False,
            eos_token_id=None,
        )  # fmt: skip
    expected = eager(model, input_ids=said[:, :-1])  # the last word was said, and never read
    for layer in range(2):
        path = paths["attentions"].format(layer)
        assert [read.first_row for read in seen[path]] == [0, 11, 12, 13, 14, 15]
        for row in range(BATCH):
            stitched = seen.stitch(path, row)
            assert_close(stitched, expected.attentions[layer][row], atol=1e-5, rtol=0)


@pytest.mark.parametrize("case", ["gpt2", "llama", "qwen2 padded"])
@torch.no_grad()
def test_padding_on_the_left_is_not_looked_at_while_generating(case):
    make, _, paths = CASES[case]
    model, real = make(), PADDING.flip(-1)
    options = {"max_new_tokens": 4, "do_sample": False, "eos_token_id": None}
    with watch(model) as seen:
        said = model.generate(IDS, attention_mask=real.long(), **options)
    path = paths["attentions"].format(1)
    assert [read.first_row for read in seen[path]] == [0, 11, 12, 13]
    for row, words in enumerate(real.sum(-1).tolist()):  # each alone, without its padding
        alone = eager(model, input_ids=said[row : row + 1, LENGTH - words : -1])
        stitched = seen.stitch(path, row)[:, LENGTH - words :, LENGTH - words :]
        assert_close(stitched, alone.attentions[1][0], atol=1e-5, rtol=0)


@torch.no_grad()
def test_a_cache_of_fixed_length_has_rows_where_its_words_are():
    model = llama()
    options = {"max_new_tokens": 4, "do_sample": False, "eos_token_id": None}
    with watch(model) as seen:
        said = model.generate(IDS, cache_implementation="static", **options)
    path = "model.layers.1.self_attn"
    assert [read.first_row for read in seen[path]] == [0, 11, 12, 13]
    count = said.shape[1] - 1
    expected = eager(model, input_ids=said[:, :-1]).attentions[1][2]
    assert_close(seen.stitch(path, 2)[..., :count], expected, atol=1e-5, rtol=0)


@torch.no_grad()
def test_a_generated_translation_has_maps_of_both_kinds():
    model = marian()
    with watch(model) as seen:
        said = model.generate(IDS, max_new_tokens=6, num_beams=1, do_sample=False, min_length=7)
    expected = eager(model, input_ids=IDS, decoder_input_ids=said[:, :-1])
    for name, path in CASES["marian padded"][2].items():
        for layer in range(2):
            reads = seen[path.format(layer)]
            if name != "encoder_attentions":
                assert [read.first_row for read in reads] == list(range(said.shape[1] - 1))
            stitched = seen.stitch(path.format(layer), 2)
            assert_close(stitched, expected[name][layer][2], atol=1e-5, rtol=0)


@torch.no_grad()
def test_a_step_over_a_cache_of_n_is_row_n():
    model = llama()
    cache = model(IDS[:, :-1], use_cache=True).past_key_values
    with watch(model) as seen:
        model(IDS[:, -1:], past_key_values=cache)
    (read,) = seen["model.layers.1.self_attn"]
    assert read.first_row == LENGTH - 1
    expected = eager(model, input_ids=IDS).attentions[1][:, :, -1:]
    assert_close(read.weights, expected, atol=1e-5, rtol=0)


@torch.no_grad()
def test_a_head_that_reads_nothing_is_a_slice_of_zeros_before_the_output_projection():
    model, head = gpt2(), 4
    with edit(model, {"transformer.h.0.attn": zero(heads=head)}):
        edited = model(IDS).logits

    def silence(module, inputs):
        inputs[0][..., 8 * head : 8 * head + 8] = 0.0

    hook = model.transformer.h[0].attn.c_proj.register_forward_pre_hook(silence)
    expected = model(IDS).logits
    hook.remove()
    assert_close(edited, expected, atol=1e-6, rtol=0)
    assert not torch.allclose(edited, model(IDS).logits, atol=1e-3)


@torch.no_grad()
def test_only_the_heads_that_are_named_leave_the_kernel():
    model, x = llama(), []
    for layer in (0, 1):
        model.model.layers[layer].self_attn.o_proj.register_forward_pre_hook(
            lambda module, inputs: x.append(inputs[0].clone())
        )
    model(IDS)
    with edit(model, {"model.layers.0.self_attn": uniform(heads=[1, 5])}), watch(model) as seen:
        model(IDS)
    plain, edited = (part.unflatten(-1, (6, 8)) for part in (x[0], x[2]))
    assert torch.equal(edited[:, :, [0, 2, 3, 4]], plain[:, :, [0, 2, 3, 4]])
    (read,) = seen["model.layers.0.self_attn"]
    even = torch.tril(torch.ones(LENGTH, LENGTH)) / torch.arange(1, LENGTH + 1).unsqueeze(-1)
    assert_close(read.weights[:, [1, 5]], even.expand(BATCH, 2, LENGTH, LENGTH))
    expected = eager(model, input_ids=IDS).attentions[0]
    assert_close(read.weights[:, [0, 2, 3, 4]], expected[:, [0, 2, 3, 4]], atol=1e-5, rtol=0)
    assert_close(read.weights_of(heads=[5, 0])[:, 0], read.weights[:, 5])


@torch.no_grad()
def test_an_edited_row_is_a_position_also_while_generating():
    model, steps = gpt2(), []

    def change(weights, mask, call):
        steps.append((call.path, call.step, call.rows))
        return weights

    changes = {"transformer.h.1.attn": change, "transformer.h.0.attn": zero(heads=2, rows=12)}
    with edit(model, changes), watch(model) as seen:
        model.generate(IDS, max_new_tokens=4, do_sample=False, eos_token_id=None)
    silent = (seen.stitch("transformer.h.0.attn")[2] == 0).all(dim=-1)
    assert silent.nonzero().flatten().tolist() == [12]
    rows = [range(0, 11), range(11, 12), range(12, 13), range(13, 14)]
    assert steps == [("transformer.h.1.attn", step, rows[step]) for step in range(4)]


@torch.no_grad()
def test_a_model_that_attends_in_its_own_code_is_named_with_what_to_switch():
    model = gpt2()
    model.set_attn_implementation("eager")
    message = r"GPT2LMHeadModel was called and no attention was seen.*attn_implementation=\"sdpa\""
    with pytest.raises(ValueError, match=message), watch(model):
        model(IDS)
    with pytest.raises(ValueError, match=message), edit(model, {"transformer.h.0.attn": "zero"}):
        model(IDS)
    with watch(model):
        pass  # nobody called it


@torch.no_grad()
def test_a_path_without_an_attention_is_answered_with_the_nearest():
    model = gpt2()
    refused = {
        "no attention at 'transformer.h.0.atn'; did you mean 'transformer.h.0.attn'": (
            "transformer.h.0.atn", zero(),
        ),
        "made no attention call at 'transformer.h.0.mlp'; did you mean 'transformer.h.0.attn'": (
            "transformer.h.0.mlp", zero(),
        ),
        r"heads \(6\) must lie within 0 … 5": ("transformer.h.0.attn", zero(heads=6)),
        r"rows \(11\) of 'transformer.h.0.attn' must lie within 0 … 10": (
            "transformer.h.0.attn", zero(rows=11),
        ),
    }  # fmt: skip
    for message, (path, change) in refused.items():
        with pytest.raises(ValueError, match=message), edit(model, {path: change}):
            model(IDS)
    with watch(model) as seen:
        model(IDS)
    with pytest.raises(KeyError, match=r"no attention was seen at 'h.0.attn'; did you mean"):
        seen["h.0.attn"]
