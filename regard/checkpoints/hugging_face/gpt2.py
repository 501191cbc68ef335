"""GPT-2, theirs beside ours."""

from __future__ import annotations

from operator import itemgetter

from regard.checkpoints.hugging_face.activations import ACTIVATIONS
from regard.checkpoints.hugging_face.table import Architecture, Setting, Table, Weight, layer

RECIPE: dict[str, dict[str, object]] = {
    "data": {"unit": "character"},  # the text as it stands, line ends among it
    "training": {"feed": "windows", "batch": 1},
    "evaluation": {"batch": 1},  # a text is read from its beginning, not in several columns
}


GPT2 = Table(
    model="gpt2",
    model_type="gpt2",
    architectures=(
        Architecture("GPT2LMHeadModel", "language-model", RECIPE),
        Architecture("GPT2Model", "language-model", RECIPE, {"tied": True}, prefixed=False),
    ),
    default="GPT2LMHeadModel",
    prefix="transformer.",
    settings=(
        Setting("vocabulary_size", "vocab_size", 50257),
        Setting("longest", "n_positions", 1024, aliases=("max_position_embeddings", "n_ctx")),
        Setting("model_size", "n_embd", 768, aliases=("hidden_size",)),
        Setting("layers", "n_layer", 12, aliases=("num_hidden_layers",)),
        Setting("heads", "n_head", 12, aliases=("num_attention_heads",)),
        Setting("feedforward_size", "n_inner"),
        Setting("activation", "activation_function", "gelu_new", ACTIVATIONS),
        Setting("dropout", "resid_pdrop", 0.1),
        Setting("embedding_dropout", "embd_pdrop", 0.1, otherwise=itemgetter("dropout")),
        Setting("attention_dropout", "attn_pdrop", 0.1, otherwise=itemgetter("dropout")),
        Setting("eps", "layer_norm_epsilon", 1e-5),
        Setting("init_std", "initializer_range", 0.02),
        Setting("scaled_by_size", "scale_attn_weights", True),
        Setting("scaled_by_layer", "scale_attn_by_inverse_layer_idx", False),
        Setting("tied", "tie_word_embeddings", True),
    ),
    weights=(
        Weight("embedding.weight", ("wte.weight",)),
        Weight("positions.table", ("wpe.weight",)),
        *layer("layers.{}.attention_norm", "h.{}.ln_1"),
        *layer("layers.{}.attention.projection", "h.{}.attn.c_attn", transposed=True),  # q, k, v
        *layer("layers.{}.attention.output", "h.{}.attn.c_proj", transposed=True),
        *layer("layers.{}.feedforward_norm", "h.{}.ln_2"),
        *layer("layers.{}.feedforward.expand", "h.{}.mlp.c_fc", transposed=True),
        *layer("layers.{}.feedforward.contract", "h.{}.mlp.c_proj", transposed=True),
        *layer("norm", "ln_f"),
        Weight("output.weight", ("lm_head.weight",), prefixed=False),
    ),
    required={"add_cross_attention": False, "is_encoder_decoder": False},
    ours_only={"norm": "pre", "positions": "learned"},
    ignored=("h.{}.attn.bias", "h.{}.attn.masked_bias"),  # masks that older versions stored
    tied=("tied", "lm_head.weight", "wte.weight"),
)
