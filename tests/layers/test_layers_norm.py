import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.attention import Causal, KeyValueCache, MultiHead
from regard.layers import FeedForward, LayerNorm, Residual, add_residual


class Nothing(nn.Module):
    """A block with nothing to say."""

    def forward(self, inputs):
        return torch.zeros_like(inputs)


def test_a_normed_vector_has_mean_zero_and_variance_one():
    normed = LayerNorm(101, elementwise_affine=False)(5 + 3 * torch.randn(3, 7, 101))
    assert_close(normed.mean(dim=-1), torch.zeros(3, 7), atol=1e-6, rtol=0)
    assert_close(normed.var(dim=-1, correction=0), torch.ones(3, 7), atol=1e-5, rtol=0)


def test_by_hand_one_two_three():
    normed = LayerNorm(3, elementwise_affine=False)(torch.tensor([1.0, 2.0, 3.0]))
    # μ = 2, σ² = 2/3: divided by the root of the variance, not by the variance.
    assert_close(normed, torch.tensor([-1.0, 0.0, 1.0]) * 1.5**0.5, atol=1e-5, rtol=0)


def test_epsilon_stands_inside_the_root():
    normed = LayerNorm(2, eps=0.75, elementwise_affine=False)(torch.tensor([-0.5, 0.5]))
    assert_close(normed, torch.tensor([-0.5, 0.5]))  # σ² + ε = ¼ + ¾
    assert torch.all(LayerNorm(5)(torch.full((3, 5), 7.0)) == 0)


@pytest.mark.parametrize("eps", [1e-5, 1e-12])
def test_layer_norm_with_torchs_weights_does_what_torchs_does(eps):
    ours, theirs = LayerNorm(7, eps), nn.LayerNorm(7, eps)
    nn.init.normal_(theirs.weight)
    nn.init.normal_(theirs.bias)
    ours.load_state_dict(theirs.state_dict())
    inputs = torch.randn(3, 5, 7)
    assert torch.equal(ours(inputs), theirs(inputs))


def test_layer_norm_refuses_vectors_of_another_size():
    with pytest.raises(ValueError, match=r"inputs \(3, 5\) must end in size 7"):
        LayerNorm(7)(torch.randn(3, 5))
    with pytest.raises(ValueError, match=r"size \(0\) must be at least 1"):
        LayerNorm(0)


def test_a_block_with_nothing_to_say_is_the_identity():
    inputs = torch.randn(3, 5, 7)
    deep = nn.Sequential(*(Residual(Nothing(), 7, dropout=0.5) for _ in range(11)))
    assert torch.equal(deep(inputs), inputs)
    assert_close(Residual(Nothing(), 7, norm="post")(inputs), LayerNorm(7)(inputs))


def test_pre_norms_what_the_block_hears_and_post_what_comes_of_it():
    block, inputs = FeedForward(7, 11), torch.randn(3, 5, 7)
    norm = nn.LayerNorm(7)
    assert_close(Residual(block, 7, norm="pre")(inputs), inputs + block(norm(inputs)))
    assert_close(Residual(block, 7, norm="post")(inputs), norm(inputs + block(inputs)))


def test_a_residual_hands_its_block_whatever_else_it_is_given():
    def block(inputs, factor, *, shift):
        return factor * inputs + shift

    inputs = torch.randn(3, 7)
    result = Residual(block, 7)(inputs, 2.0, shift=1.0)
    assert_close(result, inputs + 2 * nn.LayerNorm(7)(inputs) + 1)


def by_hand(norm, residual, attention, inputs, **rest):
    """A Transformer layer's attention written out, with the modules of `residual`."""
    if norm == "pre":
        return inputs + residual.dropout(attention(residual.norm(inputs), **rest))
    return residual.norm(inputs + residual.dropout(attention(inputs, **rest)))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_around_attention_with_mask_cache_and_dropout_no_bit_and_no_draw_differs(norm):
    attention = MultiHead(7, 1, dropout=0.3)
    residual = Residual(attention, 7, norm=norm, dropout=0.5)
    nn.init.normal_(residual.norm.weight)
    inputs = torch.randn(3, 5, 7)
    results = []
    for run in (residual, lambda *args, **rest: by_hand(norm, residual, attention, *args, **rest)):
        torch.manual_seed(1)
        cache = KeyValueCache()
        outputs = [run(part, mask=Causal(), cache=cache) for part in (inputs[:, :3], inputs[:, 3:])]
        assert cache.length == 5
        results.append((torch.cat(outputs, dim=1), torch.rand(())))
    (ours, ours_next), (theirs, theirs_next) = results
    assert torch.equal(ours, theirs)
    assert torch.equal(ours_next, theirs_next)  # as many random numbers were drawn


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_model_may_keep_the_modules_of_a_residual_under_its_own_names(norm):
    residual = Residual(FeedForward(7, 11), 7, norm=norm, dropout=0.5)
    inputs = torch.randn(3, 5, 7)
    torch.manual_seed(1)
    expected = residual(inputs)
    torch.manual_seed(1)
    result = add_residual(inputs, residual.block, residual.norm, residual.dropout, norm)
    assert torch.equal(result, expected)


def test_a_norm_that_is_neither_before_nor_behind_is_refused():
    with pytest.raises(ValueError, match=r"norm \('around'\) must be pre or post"):
        Residual(Nothing(), 7, norm="around")
