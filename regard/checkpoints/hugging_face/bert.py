"""BERT, theirs beside ours."""

from __future__ import annotations

from operator import itemgetter

from regard.checkpoints.hugging_face.activations import ACTIVATIONS
from regard.checkpoints.hugging_face.table import Architecture, Setting, Table, Weight, layer

TEXTS = {"training": {"feed": "texts"}}
PAIRS = {"training": {"feed": "pairs"}}
BOTH_HEADS = {"masked_words": True, "next_sentence": True, "pooler": True}
CLASSIFIER = {"pooler": True}  # whatever heads its recipe speaks of, it has one

BERT = Table(
    model="bert",
    model_type="bert",
    architectures=(  # from the one with most parts to the one with fewest
        Architecture("BertForPreTraining", "pretraining", PAIRS, BOTH_HEADS),
        Architecture("BertForMaskedLM", "pretraining", TEXTS, {"masked_words": True}),
        Architecture(
            "BertForNextSentencePrediction",
            "pretraining",
            PAIRS,
            {"next_sentence": True, "pooler": True},
        ),
        Architecture("BertModel", "pretraining", TEXTS, prefixed=False),
        Architecture(
            "BertForSequenceClassification", "classification", {}, CLASSIFIER, labelled=True
        ),
    ),
    default="BertModel",
    prefix="bert.",
    settings=(
        Setting("vocabulary_size", "vocab_size", 30522),
        Setting("longest", "max_position_embeddings", 512),
        Setting("segments", "type_vocab_size", 2),
        Setting("model_size", "hidden_size", 768),
        Setting("layers", "num_hidden_layers", 12),
        Setting("heads", "num_attention_heads", 12),
        Setting(
            "feedforward_size", "intermediate_size", 3072, otherwise=lambda s: 4 * s["model_size"]
        ),
        Setting("activation", "hidden_act", "gelu", ACTIVATIONS),
        Setting("dropout", "hidden_dropout_prob", 0.1),
        Setting(
            "attention_dropout",
            "attention_probs_dropout_prob",
            0.1,
            otherwise=itemgetter("dropout"),
        ),
        Setting("classifier_dropout", "classifier_dropout"),
        Setting("init_std", "initializer_range", 0.02),
        Setting("eps", "layer_norm_eps", 1e-12),
    ),
    weights=(
        Weight("embedding.weight", ("embeddings.word_embeddings.weight",)),
        Weight("segments.weight", ("embeddings.token_type_embeddings.weight",)),
        Weight("positions.table", ("embeddings.position_embeddings.weight",)),
        *layer("norm", "embeddings.LayerNorm"),
        *layer(
            "layers.{}.attention.projection",
            *(f"encoder.layer.{{}}.attention.self.{part}" for part in ("query", "key", "value")),
        ),
        *layer("layers.{}.attention.output", "encoder.layer.{}.attention.output.dense"),
        *layer("layers.{}.attention_norm", "encoder.layer.{}.attention.output.LayerNorm"),
        *layer("layers.{}.feedforward.expand", "encoder.layer.{}.intermediate.dense"),
        *layer("layers.{}.feedforward.contract", "encoder.layer.{}.output.dense"),
        *layer("layers.{}.feedforward_norm", "encoder.layer.{}.output.LayerNorm"),
        *layer("pooler.dense", "pooler.dense"),
        *layer("masked_head.dense", "cls.predictions.transform.dense", prefixed=False),
        *layer("masked_head.norm", "cls.predictions.transform.LayerNorm", prefixed=False),
        Weight("output.bias", ("cls.predictions.bias",), prefixed=False),
        *layer("next_sentence", "cls.seq_relationship", prefixed=False),
        *layer("classifier", "classifier", prefixed=False),
    ),
    required={
        "position_embedding_type": "absolute",
        "is_decoder": False,
        "add_cross_attention": False,
        "tie_word_embeddings": True,
    },
    heads={
        "pooler": "pooler.dense.weight",
        "masked_words": "cls.predictions.transform.dense.weight",
        "next_sentence": "cls.seq_relationship.weight",
    },
    ignored=("embeddings.position_ids", "embeddings.token_type_ids"),
    copies={
        "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    respelled={"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"},
    marked=True,
)
