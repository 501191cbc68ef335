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
