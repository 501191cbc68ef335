"""Models of transformers with random weights, saved in folders as people have them."""

import pytest
import torch

transformers = pytest.importorskip("transformers")


def shake(model):
    """Weights that are all large enough to matter, norms and biases too."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator), alpha=0.2)
    return model.eval()


def make_gpt2(**settings):
    sizes = {"vocab_size": 97, "n_positions": 40, "n_embd": 24, "n_layer": 3, "n_head": 4}
    specials = {"bos_token_id": 0, "eos_token_id": 0}
    config = transformers.GPT2Config(**(sizes | specials | settings), attn_implementation="eager")
    return shake(transformers.GPT2LMHeadModel(config))


@pytest.fixture
def gpt2(tmp_path):
    """gpt2(n_inner=37) gives a model of transformers, and the folder it was saved in."""

    def make(**settings):
        model = make_gpt2(**settings)
        model.save_pretrained(tmp_path / "gpt2")
        return model, tmp_path / "gpt2"

    return make


def make_bert(kind, **settings):
    sizes = {"vocab_size": 97, "max_position_embeddings": 40, "hidden_size": 24}
    sizes |= {"num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 37}
    config = transformers.BertConfig(**(sizes | settings), attn_implementation="eager")
    return shake(getattr(transformers, kind)(config))


@pytest.fixture
def bert(tmp_path):
    """bert("BertModel", hidden_act="relu") gives their model, and the folder it was saved in."""

    def make(kind, **settings):
        model = make_bert(kind, **settings)
        model.save_pretrained(tmp_path / "bert")
        return model, tmp_path / "bert"

    return make
