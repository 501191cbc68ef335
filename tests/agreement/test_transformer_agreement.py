"""The Transformer against torch's own, weights copied, padding on both sides."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.data.batches import Pairs
from regard.models.transformer import Transformer, TransformerConfig

SIZES = {"vocabulary_size": 11, "model_size": 12, "heads": 3, "layers": 2, "feedforward_size": 7}
PARTS = {  # theirs: ours
    "self_attn.in_proj_": "attention.projection.",
    "self_attn.out_proj.": "attention.output.",
    "multihead_attn.in_proj_": "cross_attention.projection.",
    "multihead_attn.out_proj.": "cross_attention.output.",
    "linear1.": "feedforward.expand.",
    "linear2.": "feedforward.contract.",
}
NORMS = {
    "encoder": {"norm1.": "attention_norm.", "norm2.": "feedforward_norm."},
    "decoder": {
        "norm1.": "attention_norm.",
        "norm2.": "cross_attention_norm.",
        "norm3.": "feedforward_norm.",
    },
}


def make_both(norm, activation="relu"):
    """Our model, torch's, and by torch's names what belongs together."""
    torch.manual_seed(5)
    ours = Transformer(
        TransformerConfig(**SIZES, norm=norm, activation=activation, dropout=0.0)
    ).double()
    theirs = nn.Transformer(
        d_model=12,
        nhead=3,
        num_encoder_layers=2,
        num_decoder_layers=2,
        dim_feedforward=7,
        dropout=0.0,
        activation=activation,
        batch_first=True,
        norm_first=norm == "pre",
        dtype=torch.float64,
    )
    if norm == "post":  # figure 1 of the paper has no norm behind the last one
        theirs.encoder.norm, theirs.decoder.norm = None, None
    with torch.no_grad():
        for weight in ours.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.2)
    own, names = dict(ours.named_parameters()), {}
    for name, _ in theirs.named_parameters():
        side = name.partition(".")[0]
        ours_name = name
        for part, replacement in {**PARTS, **NORMS[side]}.items():
            ours_name = ours_name.replace(f".{part}", f".{replacement}")
        names[name] = ours_name
    theirs.load_state_dict({name: own[mine].detach().clone() for name, mine in names.items()})
    return ours, theirs, names


def batch_of(sources, targets):
    source, words = (torch.randint(11, (len(n), max(n))) for n in (sources, targets))
    masks = [torch.arange(max(n)) < torch.tensor(n)[:, None] for n in (sources, targets)]
    return Pairs(source, masks[0], words, words, masks[1])


@pytest.mark.parametrize(("norm", "activation"), [("pre", "gelu"), ("post", "relu")])
def test_features_and_gradients_are_those_of_torch(norm, activation):
    ours, theirs, names = make_both(norm, activation)
    batch = batch_of([7, 3, 5], [2, 5, 3])
    mine = ours.output(ours.features(batch)[0])
    sides = (ours.encoder.words(batch.source), ours.decoder.words(batch.target_input))
    causal = torch.ones(5, 5, dtype=torch.bool).triu(1)
    read = theirs(
        *sides,
        tgt_mask=causal,
        src_key_padding_mask=~batch.source_mask,
        tgt_key_padding_mask=~batch.target_mask,
        memory_key_padding_mask=~batch.source_mask,
    )
    wanted = ours.output(read)
    real = batch.target_mask
    assert_close(mine[real], wanted[real])
    weighting = torch.randn_like(mine[real])
    shared = ours.output.weight
    parameters = dict(ours.named_parameters())
    inputs = [parameters[name] for name in names.values()]
    found = torch.autograd.grad((mine[real] * weighting).sum(), [*inputs, shared])
    expected = torch.autograd.grad((wanted[real] * weighting).sum(), [*theirs.parameters(), shared])
    for name, one, other in zip([*names, "table"], found, expected, strict=True):
        assert_close(one, other, msg=lambda text, name=name: f"{name}: {text}")


def test_the_base_model_has_as_many_weights_as_torch_s():
    with torch.device("meta"):
        theirs = nn.Transformer(norm_first=True)
        ours = Transformer(TransformerConfig(vocabulary_size=37_000, norm="pre"))
    table = 37_000 * 512
    own = sum(weight.numel() for weight in ours.parameters())
    assert own - table == sum(weight.numel() for weight in theirs.parameters())
