"""Matrices laid out for decoding: the same numbers, the same parameters, nothing left behind."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.attention import MultiHead, edit, watch
from regard.data.batches import Words
from regard.decoding import DecodingConfig, greedy, packed, prepare_prompts
from regard.decoding.packed import Int8Linear, PackedLinear, pack
from regard.layers import watch_gates
from regard.models import build

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="torch was built without oneDNN"
)
SIZES = {"vocabulary_size": 31, "longest": 40, "model_size": 24, "layers": 2, "heads": 2}


@pytest.fixture(autouse=True)
def small_matrices_too(monkeypatch):
    monkeypatch.setattr(packed, "MIN_WEIGHTS", 0)


@pytest.fixture
def model():
    torch.manual_seed(3)
    return build("gpt2", **SIZES).eval()


@torch.no_grad()
def step_logits(model, ids):
    state = model.start(Words.of_ids(ids[:, :-1]))
    return model.step(ids[:, -1], state)[0]


@pytest.mark.parametrize("mkl_is_slow", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 7, packed.MAX_FEW_ROWS + 1])
def test_a_packed_model_steps_to_the_same_logits(model, rows, mkl_is_slow, monkeypatch):
    monkeypatch.setattr(packed, "prefers_onednn", lambda: mkl_is_slow)
    ids = torch.randint(31, (rows, 5), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        laid_out = pack(model)
    assert any(isinstance(part, PackedLinear) for part in laid_out.modules())
    assert_close(step_logits(laid_out, ids), step_logits(model, ids), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("rows", [1, 6])
@pytest.mark.parametrize("biased", [True, False])
def test_eight_bits_err_by_half_a_step_of_either_factor_at_most(rows, biased):
    torch.manual_seed(1)
    layer, inputs = (
        nn.Linear(64, 11, bias=biased),
        torch.randn(rows, 64) * torch.logspace(-3, 3, rows)[:, None],
    )
    with torch.no_grad():
        found, exact = Int8Linear(layer.weight, layer.bias)(inputs), layer(inputs)
        # Inputs have 255 steps from their least to their largest number, weights 254.
        height = inputs.abs().amax(dim=1, keepdim=True)
        input_step, weight_step = 2 * height / 255, layer.weight.abs().amax(dim=1) / 127
        rounded = layer.weight.abs().sum(dim=1) + 64 * weight_step / 2
        bound = input_step * rounded + inputs.abs().sum(dim=1, keepdim=True) * weight_step / 2
    assert bool(((found - exact).abs() <= bound + 1e-5 * height).all())
    assert bool(((found - exact).abs() > 0).any())  # eight bits, indeed


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.Adam, torch.optim.SGD])
@pytest.mark.parametrize("rows", [1, 3])
def test_the_copy_is_made_anew_after_a_step_of_an_optimizer(model, kind, rows):
    ids = torch.randint(31, (rows, 5), generator=torch.Generator().manual_seed(0))
    optimizer = kind(model.parameters(), lr=0.1, fused=True)  # tells no tensor that it wrote to it
    with torch.no_grad():
        step_logits(pack(model), ids)
    model(Words.of_ids(ids)).square().sum().backward()
    optimizer.step()
    with torch.no_grad():
        found = step_logits(pack(model), ids)
    assert_close(found, step_logits(model, ids), atol=1e-4, rtol=1e-4)


def test_the_copy_shares_every_parameter_and_is_made_anew_when_one_changes(model):
    with torch.no_grad():
        first = pack(model)
        assert pack(model) is first
        assert first.embedding.weight is model.embedding.weight
        model.output.weight.mul_(2.0)
        assert pack(model) is not first
        ids = torch.tensor([[3, 1, 4]])
        assert_close(step_logits(pack(model), ids), step_logits(model, ids), atol=1e-5, rtol=1e-5)


def test_a_model_that_learns_or_is_of_another_precision_stays_itself(model):
    assert pack(model) is model  # gradients are enabled
    with torch.no_grad():
        assert pack(model.train()) is model
        assert pack(model.eval().double()) is model
        assert pack("no module") == "no module"


def decode(model, **settings):
    batch, first = prepare_prompts([[5, 3, 8], [2]], first=0)
    return greedy(model, batch, first, DecodingConfig(longest=6, **settings))


def test_whoever_watches_or_edits_a_model_meets_its_own_modules(model):
    plain = [[each.ids for each in row] for row in decode(model)]
    with watch(model) as seen:
        assert [[each.ids for each in row] for row in decode(model)] == plain
    assert len(seen["layers.0.attention"]) == 7  # the prompts, and six words
    with edit(model, {"layers.0.attention": "zero", "layers.1.attention": "zero"}):
        changed = decode(model)
    assert changed[0][0].log_probability != decode(model)[0][0].log_probability
    heard = []
    handle = model.layers[0].register_forward_hook(lambda *_: heard.append(1))
    decode(model)
    handle.remove()
    assert len(heard) == 7


def test_whoever_watches_gates_meets_them_too():
    model = build("rnn", kind="lstm", vocabulary_size=31, embedding_size=8, hidden_size=9).eval()
    with watch_gates(model) as seen:
        decode(model)
    assert sum(len(calls) for calls in seen.values()) == 7


def test_eight_bits_are_asked_for_in_the_config(model):
    assert decode(model, weights="int8")[0][0].log_probability != pytest.approx(
        decode(model)[0][0].log_probability, abs=1e-7
    )
    with pytest.raises(ValueError, match=r"weights \('int4'\) must be one of float32, int8"):
        DecodingConfig(weights="int4")


def test_queries_alone_are_projected_by_their_part_of_the_matrix():
    torch.manual_seed(5)
    attention = MultiHead(12, 3).eval()
    queries, memory = torch.randn(2, 1, 12), torch.randn(2, 7, 12)
    with torch.no_grad():
        laid_out = pack(attention)
        expected = attention(queries, attention.prepare(memory))
        assert_close(laid_out(queries, laid_out.prepare(memory)), expected, atol=1e-5, rtol=1e-5)
        parts = laid_out.projection._parts
    assert sorted(parts) == [(0, 12), (12, 36)]  # keys and values of one memory are one product
