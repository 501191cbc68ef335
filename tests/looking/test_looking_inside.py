"""A look into anybody's model: its labels, its kinds, and what it refuses."""

import pytest
import torch
from tokenizers import Tokenizer as FastTokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from torch import nn
from torch.testing import assert_close

import regard
from regard.models import GPT2, GPT2Config

transformers = pytest.importorskip("transformers")

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "the", "dog", "saw", "a", "cat", "eine", "Katze"]
TEXT = "the dog  saw a cat"
SIZES = {"hidden_size": 24, "intermediate_size": 17, "num_hidden_layers": 2}
SIZES |= {"num_attention_heads": 3}


def tokenizer(specials=False):
    made = FastTokenizer(WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = Whitespace()
    if specials:
        made.post_processor = TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
        )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]"
    )


def build(kind, config, **settings):
    torch.manual_seed(0)
    made = getattr(transformers, config)(**settings, attn_implementation="sdpa")
    return getattr(transformers, kind)(made).eval()


def gpt2(vocabulary=11, implementation="sdpa"):
    sizes = {"n_layer": 2, "n_head": 3, "n_embd": 24, "n_positions": 32}
    specials = {"bos_token_id": 1, "eos_token_id": 2}
    model = build("GPT2LMHeadModel", "GPT2Config", vocab_size=vocabulary, **sizes, **specials)
    model.set_attn_implementation(implementation)
    return model


def t5():
    sizes = {"d_model": 24, "d_kv": 8, "d_ff": 17, "num_layers": 1, "num_heads": 3}
    kind = "T5ForConditionalGeneration"
    return build(kind, "T5Config", vocab_size=len(WORDS), decoder_start_token_id=0, **sizes)


@torch.no_grad()
def test_tokens_are_labelled_with_the_text_they_stand_for():
    model = gpt2()
    looks = regard.look(model, tokenizer(), TEXT)
    assert looks.paths == ("transformer.h.0.attn", "transformer.h.1.attn")
    assert looks.tokens == ("the", "dog", "saw", "a", "cat")
    look = looks[1]
    assert (look.kind, look.query_text, look.key_text) == ("self", TEXT, TEXT)
    assert [(label.start, label.end) for label in look.keys] == [
        (0, 3), (4, 7), (9, 12), (13, 14), (15, 18),
    ]  # fmt: skip
    model.set_attn_implementation("eager")
    expected = model(torch.tensor([[4, 5, 6, 7, 8]]), output_attentions=True).attentions[1][0]
    assert_close(look.weights, expected, atol=1e-6, rtol=0)
    assert torch.equal(look.mask.expand_as(expected), expected > 0)


def test_specials_have_a_name_and_no_place():
    model = build("BertModel", "BertConfig", vocab_size=len(WORDS), **SIZES)
    look = regard.look(model, tokenizer(specials=True), TEXT)[0]
    assert look.keys[0].text == "[CLS]" and look.keys[0].start is None
    assert look.keys[1].text == "the" and look.keys[1].start == 0
    assert len(look.keys) == 7


def test_a_tokenizer_of_the_tokenizers_library_will_do():
    look = regard.look(gpt2(), tokenizer().backend_tokenizer, TEXT)[0]
    assert [label.text for label in look.keys] == TEXT.split()


def test_ids_need_no_tokenizer():
    assert regard.look(gpt2(), ids=[4, 10, 2]).tokens == ("4", "10", "2")
    assert regard.look(gpt2(), tokenizer(), ids=torch.tensor([[4, 10]])).tokens == ("the", "Katze")


def test_our_own_language_model_is_looked_into_the_same_way():
    sizes = {"model_size": 24, "heads": 3, "layers": 2, "feedforward_size": 17, "longest": 16}
    config = GPT2Config(vocabulary_size=len(WORDS), **sizes)
    looks = regard.look(GPT2(config).eval(), tokenizer(), TEXT)
    assert looks.paths == ("layers.0.attention", "layers.1.attention")
    assert looks.tokens == tuple(TEXT.split())


@torch.no_grad()
def test_a_translator_has_its_sides_told_apart_even_when_they_are_of_one_length():
    model = t5()
    looks = regard.look(model, tokenizer(), "the cat", target="eine Katze")
    sides = {
        look.path: (look.kind, *("".join(x.text for x in y) for y in (look.queries, look.keys)))
        for look in looks
    }
    assert sides == {
        "encoder.block.0.layer.0.SelfAttention": ("self", "thecat", "thecat"),
        "decoder.block.0.layer.0.SelfAttention": ("self", "⟨start⟩eine", "⟨start⟩eine"),
        "decoder.block.0.layer.1.EncDecAttention": ("cross", "⟨start⟩eine", "thecat"),
    }
    model.set_attn_implementation("eager")
    ids, said = torch.tensor([[4, 8]]), torch.tensor([[0, 9]])
    expected = model(ids, decoder_input_ids=said, output_attentions=True).cross_attentions[0][0]
    assert_close(looks[2].weights, expected, atol=1e-6, rtol=0)


@torch.no_grad()
def test_an_image_is_a_grid_of_patches():
    model = build("ViTModel", "ViTConfig", image_size=12, patch_size=4, **SIZES)
    pixels = torch.randn(3, 12, 12)
    looks = regard.look(model, image=pixels)
    look = looks[1]
    assert (look.kind, look.grid, len(look.keys)) == ("image", (3, 3), 9)
    assert [label.text for label in look.queries][:2] == ["[CLS]", "0,0"]
    model.set_attn_implementation("eager")
    expected = model(pixels[None], output_attentions=True).attentions[1][0]
    assert_close(look.weights, expected[..., 1:], atol=1e-6, rtol=0)


def test_looks_of_anybodys_model_can_be_saved_and_drawn(tmp_path):
    looks = regard.look(gpt2(), tokenizer(), TEXT)
    for ending in ("html", "svg", "png", "json"):
        looks.save(tmp_path / f"look.{ending}")
    loaded = type(looks).load(tmp_path / "look.json")
    assert torch.equal(loaded[0].weights, looks[0].weights)


REFUSED = {
    "a tokenizer of another model": (
        lambda: regard.look(gpt2(vocabulary=7), tokenizer(), TEXT),
        r"tokenizer \(\w+\) gives id 8 \('cat'\), but the embedding of GPT2LMHeadModel has 7 rows",
    ),
    "ids beyond the last": (
        lambda: regard.look(gpt2(), ids=[3, 11]),
        r"ids gives id 11 .* has 11 rows: ids must lie within 0 … 10",
    ),
    "eager code": (
        lambda: regard.look(gpt2(implementation="eager"), tokenizer(), TEXT),
        r"GPT2LMHeadModel was called and no attention was seen",
    ),
    "no attention": (
        lambda: regard.look(nn.Sequential(nn.Embedding(5, 3)), ids=[1]),
        r"Sequential made no attention call that can be seen",
    ),
    "nothing to read": (lambda: regard.look(gpt2()), "look needs one of text"),
    "no tokens": (lambda: regard.look(gpt2(), tokenizer(), " "), "has no tokens to look at"),
    "no tokenizer": (lambda: regard.look(gpt2(), text=TEXT), "needs a tokenizer"),
    "no target": (lambda: regard.look(t5(), ids=[4]), "T5ForConditionalGeneration writes while"),
    "a target too many": (
        lambda: regard.look(gpt2(), ids=[4], target_ids=[5]),
        "GPT2LMHeadModel reads one sequence",
    ),
    "several images": (lambda: regard.look(gpt2(), image=torch.ones(2, 3, 4, 4)), r"image \(2, 3"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_looked_at_is_refused_with_its_reason(name):
    ask, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        ask()
