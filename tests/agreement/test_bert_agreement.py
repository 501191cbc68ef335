"""BERT against transformers: the same weights give the same numbers, layer by layer."""

import pytest
import torch
from torch.testing import assert_close

from regard.attention import watch
from regard.data.batches import MarkedTexts, MaskedTexts
from regard.models.bert import Bert, BertClassifier, BertConfig
from regard.models.outline import outline

transformers = pytest.importorskip("transformers")

CLOSE = {"atol": 1e-5, "rtol": 0}
ACTIVATIONS = {"gelu": "gelu", "gelu-tanh": "gelu_pytorch_tanh", "relu": "relu"}
ODD = {
    "three heads": {"model_size": 21, "heads": 3, "layers": 2, "feedforward_size": 37},
    "one deep head": {"model_size": 10, "heads": 1, "layers": 5, "feedforward_size": 7},
    "tanh": {"model_size": 24, "heads": 4, "layers": 3, "activation": "gelu-tanh"},
    "relu, wide eps": {"model_size": 12, "heads": 2, "layers": 1, "activation": "relu", "eps": 0.1},
    "five segments": {"model_size": 14, "heads": 7, "layers": 2, "segments": 5},
}
PARTS = (  # theirs → ours, within a layer
    ("attention.output.dense", "attention.output"),
    ("attention.output.LayerNorm", "attention_norm"),
    ("intermediate.dense", "feedforward.expand"),
    ("output.dense", "feedforward.contract"),
    ("output.LayerNorm", "feedforward_norm"),
)
WHOLE = {
    "bert.embeddings.word_embeddings.weight": "embedding.weight",
    "bert.embeddings.token_type_embeddings.weight": "segments.weight",
    "bert.embeddings.position_embeddings.weight": "positions.table",
    "bert.embeddings.LayerNorm": "norm",
    "bert.pooler.dense": "pooler.dense",
    "cls.predictions.transform.dense": "masked_head.dense",
    "cls.predictions.transform.LayerNorm": "masked_head.norm",
    "cls.predictions.bias": "output.bias",
    "cls.seq_relationship": "next_sentence",
    "classifier": "classifier",
}


def their_config(config, **more):
    return transformers.BertConfig(
        vocab_size=config.vocabulary_size,
        hidden_size=config.model_size,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        intermediate_size=config.feedforward_size or 4 * config.model_size,
        hidden_act=ACTIVATIONS[config.activation],
        max_position_embeddings=config.longest,
        type_vocab_size=config.segments,
        layer_norm_eps=config.eps,
        attn_implementation="eager",
        **more,
    )


def shake(model):
    """Weights that are large enough to matter, norms and biases too."""
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.3)
    return model.eval()


def copy(theirs, ours):
    """Put their weights into our model, each under the name it has here."""
    held, named = theirs.state_dict(), {}
    for name, own in WHOLE.items():
        for kind in ("", ".weight", ".bias"):
            if name + kind in held:
                named[own + kind] = held[name + kind]
    for number in range(ours.config.layers):
        layer, own = f"bert.encoder.layer.{number}", f"layers.{number}"
        for kind in ("weight", "bias"):
            parts = [f"{layer}.attention.self.{part}.{kind}" for part in ("query", "key", "value")]
            named[f"{own}.attention.projection.{kind}"] = torch.cat([held[part] for part in parts])
            for name, part in PARTS:
                named[f"{own}.{part}.{kind}"] = held[f"{layer}.{name}.{kind}"]
    if "output.bias" in named:
        named["output.weight"] = named["embedding.weight"]
    ours.load_state_dict(named)
    return ours.eval()


def padded_texts(config):
    """Three texts of 13, 7 and 1 tokens, each with its segments."""
    ids = torch.randint(config.vocabulary_size, (3, 13))
    mask = torch.arange(13) < torch.tensor([[13], [7], [1]])
    return ids, mask, torch.randint(config.segments, (3, 13))


@pytest.mark.parametrize("settings", ODD.values(), ids=ODD)
@torch.no_grad()
def test_pretraining_model_gives_the_numbers_of_transformers(settings):
    torch.manual_seed(3)
    config = BertConfig(vocabulary_size=31, longest=17, **settings)
    theirs = shake(transformers.BertForPreTraining(their_config(config)))
    ours = copy(theirs, Bert(config))
    ids, mask, segments = padded_texts(config)
    expected = theirs(ids, mask.long(), segments, output_hidden_states=True, output_attentions=True)
    batch = MaskedTexts(ids, mask, segments)
    with watch(ours) as seen:
        states = list(ours.hidden_states(batch))
    assert len(states) == len(expected.hidden_states) == config.layers + 1
    for found, wanted in zip(states, expected.hidden_states, strict=True):
        assert_close(found[mask], wanted[mask], **CLOSE)
    for number, wanted in enumerate(expected.attentions):
        [attended] = seen[f"layers.{number}.attention"]
        for row, length in enumerate((13, 7, 1)):
            assert_close(attended.weights[row, :, :length], wanted[row, :, :length], **CLOSE)
    assert_close(ours.word_logits(states[-1])[mask], expected.prediction_logits[mask], **CLOSE)
    assert_close(ours(batch)[mask], expected.prediction_logits[mask], **CLOSE)
    assert_close(ours.next_logits(states[-1]), expected.seq_relationship_logits, **CLOSE)
    assert_close(ours.pool(states[-1]), theirs.bert(ids, mask.long(), segments)[1], **CLOSE)


@torch.no_grad()
def test_classifier_gives_the_numbers_of_transformers():
    torch.manual_seed(5)
    config = BertConfig(vocabulary_size=31, longest=17, classes=3, **ODD["three heads"])
    theirs = shake(transformers.BertForSequenceClassification(their_config(config, num_labels=3)))
    ours = copy(theirs, BertClassifier(config))
    ids, mask, segments = padded_texts(config)
    expected = theirs(ids, mask.long(), segments).logits
    found = ours(MarkedTexts(ids, mask, torch.zeros(3), segments=segments))
    assert_close(found, expected, **CLOSE)


@pytest.mark.parametrize(
    ("preset", "encoder", "whole"),
    [("base", 109_482_240, 110_106_428), ("large", 335_141_888, 336_226_108)],
)
def test_the_paper_s_rows_have_as_many_parameters_as_transformers_counts(preset, encoder, whole):
    config = BertConfig(vocabulary_size=30_522, **BertConfig.presets[preset])
    with torch.device("meta"):
        theirs = transformers.BertForPreTraining(their_config(config))
    ours = outline(lambda: Bert(config))
    assert theirs.bert.num_parameters() == encoder
    heads = ("masked_head", "output", "next_sentence")
    own = [p.numel() for name, p in ours.named_parameters() if not name.startswith(heads)]
    assert sum(own) == encoder
    assert sum(p.numel() for p in ours.parameters()) == theirs.num_parameters() == whole
