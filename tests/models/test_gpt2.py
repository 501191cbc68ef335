import math

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from regard.attention import watch
from regard.data.batches import Words
from regard.models import build
from regard.models.gpt2 import GPT2, GPT2Config
from regard.models.outline import outline

SMALL = {"vocabulary_size": 11, "model_size": 12, "heads": 3, "layers": 2, "longest": 19}
CLOSE = {"atol": 2e-6, "rtol": 2e-5}


def shaken(**settings):
    """A model whose weights are all large enough to matter, its norms and biases too."""
    model = GPT2(GPT2Config(**SMALL, **settings)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.3)
    return model


def gpt2(model, ids):
    """GPT-2's forward pass, derived from its description, for one text of ids (position,)."""
    weights, config = dict(model.named_parameters()), model.config
    heads, size = config.heads, config.model_size // config.heads

    def norm(x, name):
        mean = x.mean(-1, keepdim=True)
        variance = ((x - mean) ** 2).mean(-1, keepdim=True)
        standard = (x - mean) / (variance + 1e-5).sqrt()
        return standard * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def linear(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def gelu(x):
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    x = weights["embedding.weight"][ids] + weights["positions.table"][: len(ids)]
    for n in range(config.layers):
        q, k, v = linear(
            norm(x, f"layers.{n}.attention_norm"), f"layers.{n}.attention.projection"
        ).chunk(3, -1)
        read = []
        for h in range(heads):
            own = slice(h * size, (h + 1) * size)
            scores = q[:, own] @ k[:, own].T / math.sqrt(size)
            hidden = torch.triu(torch.ones(len(ids), len(ids)), diagonal=1).bool()
            scores = scores.masked_fill(hidden, -math.inf)
            read.append(scores.softmax(-1) @ v[:, own])
        x = x + linear(torch.cat(read, -1), f"layers.{n}.attention.output")
        inner = gelu(
            linear(norm(x, f"layers.{n}.feedforward_norm"), f"layers.{n}.feedforward.expand")
        )
        x = x + linear(inner, f"layers.{n}.feedforward.contract")
    return norm(x, "norm") @ weights["embedding.weight"].T


def test_the_defaults_are_gpt_2(words):
    model, batch = shaken(), words(2, 13)
    expected = torch.stack([gpt2(model, ids) for ids in batch.inputs])
    assert_close(model(batch), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("preset", "parameters"),
    [
        ("small", 124_439_808),
        ("medium", 354_823_168),
        ("large", 774_030_080),
        ("xl", 1_557_611_200),
    ],
)
def test_the_four_models_have_as_many_weights_as_those_published(preset, parameters):
    model = outline(lambda: build("gpt2", preset=preset, vocabulary_size=50_257))
    assert sum(weight.numel() for weight in model.parameters()) == parameters


def test_post_norm_with_relu_is_torch_s_encoder_under_a_causal_mask(words):
    model = shaken(norm="post", activation="relu", tied=False)
    batch = words(3, 13)
    x = model.embedding(batch.inputs) + model.positions.table[:13]
    for layer in model.layers:
        other = torch.nn.TransformerEncoderLayer(12, 3, 48, batch_first=True, dropout=0.0)
        theirs = {
            "self_attn.in_proj": layer.attention.projection,
            "self_attn.out_proj": layer.attention.output,
            "linear1": layer.feedforward.expand,
            "linear2": layer.feedforward.contract,
            "norm1": layer.attention_norm,
            "norm2": layer.feedforward_norm,
        }
        separator = {"self_attn.in_proj": "_"}
        other.load_state_dict(
            {
                f"{name}{separator.get(name, '.')}{kind}": getattr(part, kind)
                for name, part in theirs.items()
                for kind in ("weight", "bias")
            }
        )
        mask = torch.nn.Transformer.generate_square_subsequent_mask(13)
        x = other(x, src_mask=mask, is_causal=True)
    assert_close(model(batch), x @ model.output.weight.T, atol=1e-5, rtol=1e-4)


def test_residual_projections_start_smaller_the_deeper_the_model():
    model = GPT2(GPT2Config(vocabulary_size=11, model_size=96, layers=8, heads=3))
    for name, weight in model.named_parameters():
        spread = weight.std().item() if weight.dim() > 1 else 0.0
        if name.endswith(("attention.output.weight", "feedforward.contract.weight")):
            assert spread == pytest.approx(0.02 / 4, rel=0.05), name
        elif weight.dim() > 1:
            assert spread == pytest.approx(0.02, rel=0.1), name
        else:
            assert set(weight.tolist()) <= {float(name.endswith("weight"))}, name


def test_a_model_without_biases_has_none():
    model = GPT2(GPT2Config(**SMALL, bias=False))
    assert not [name for name, _ in model.named_parameters() if name.endswith("bias")]


def test_sinusoidal_words_are_scaled_so_that_waves_do_not_drown_them(words):
    model, batch = shaken(positions="sinusoidal"), words(2, 7)
    with torch.no_grad():
        for layer in model.layers:  # silent blocks: what comes in goes out
            for part in (layer.attention.output, layer.feedforward.contract):
                part.weight.zero_(), part.bias.zero_()
    features, _ = model.features(batch)
    angle = 3 / 10_000 ** (2 / 12)  # position 3, the second pair of dimensions
    waves = torch.zeros(12)
    for pair in range(6):
        angle = 3 / 10_000 ** (2 * pair / 12)
        waves[2 * pair], waves[2 * pair + 1] = math.sin(angle), math.cos(angle)
    vector = model.embedding.weight[batch.inputs[1, 3]] * math.sqrt(12) + waves
    expected = F.layer_norm(vector, (12,), model.norm.weight, model.norm.bias)
    assert_close(features[1, 3], expected)


def test_rotary_positions_tell_distances_and_not_places(words):
    """With a window no longer than the text, a text is read alike wherever it stands."""
    model = shaken(positions="rotary")
    alone = torch.tensor([[3, 1, 4]])
    moved = Words.prompts([[9] * 8, [3, 1, 4]])
    assert_close(model(moved)[1:, 5:], model(Words(alone, alone, alone >= 0)), **CLOSE)
    turned = torch.tensor([[4, 1, 3]])
    last = model(Words(turned, turned, turned >= 0))[0, -1]
    assert not torch.allclose(last, model(Words(alone, alone, alone >= 0))[0, -1])


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary"])
def test_packed_documents_are_read_as_if_each_were_alone(positions):
    model = shaken(positions=positions)
    texts = [[3, 1, 4, 1], [5, 9], [2, 6, 5, 3, 5, 8, 9]]
    ids = torch.tensor([[word for text in texts for word in text]])
    documents = torch.tensor([[n for n, text in enumerate(texts) for _ in text]])
    # As in training, the last word of a document has no target, and its mask is False.
    mask = torch.cat([documents[:, 1:] == documents[:, :-1], torch.tensor([[False]])], dim=1)
    packed = model(Words(ids, ids, mask, documents))
    alone = [model(Words.prompts([text])) for text in texts]
    assert_close(packed, torch.cat(alone, dim=1), **CLOSE)


def test_a_row_may_hold_more_words_than_there_are_positions_if_no_document_does():
    model = GPT2(GPT2Config(**SMALL))
    ids = torch.zeros(1, 38, dtype=torch.long)
    documents = torch.arange(38).unsqueeze(0) // 19
    assert model(Words(ids, ids, ids >= 0, documents)).shape == (1, 38, 11)
    with pytest.raises(ValueError, match="the text has 20 tokens, but this model has 19 positions"):
        model(Words(ids, ids, ids >= 0, torch.arange(38).unsqueeze(0) // 20))


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary"])
def test_a_text_longer_than_the_positions_is_refused_with_both_numbers(positions, words):
    model = GPT2(GPT2Config(**SMALL, positions=positions))
    message = r"the text has 20 tokens, but this model has 19 positions \(longest\)"
    with pytest.raises(ValueError, match=message):
        model(words(2, 20))
    with torch.no_grad():
        state = model.start(words(2, 19))
        with pytest.raises(ValueError, match=message):
            model.step(torch.tensor([1, 2]), state)


@torch.no_grad()
def test_padding_uses_up_no_positions():
    model = shaken()
    state = model.start(Words.prompts([[1] * 12, [2] * 3]))
    for _ in range(7):
        _, state = model.step(torch.tensor([1, 2]), state)
    with pytest.raises(ValueError, match="the text has 20 tokens"):
        model.step(torch.tensor([1, 2]), state)
    alone = state.pick(torch.tensor([1]))
    for _ in range(9):
        _, alone = model.step(torch.tensor([2]), alone)


@torch.no_grad()
def test_a_long_prompt_can_be_read_in_pieces(words):
    model, batch = shaken(), words(2, 13)
    parts = [
        Words(batch.inputs[:, part], batch.targets[:, part], batch.mask[:, part])
        for part in (slice(0, 5), slice(5, 13))
    ]
    first, state = model.features(parts[0], model.start(words(2, 0)))
    second, state = model.features(parts[1], state)
    expected, _ = model.features(batch)
    assert_close(torch.cat([first, second], dim=1), expected, **CLOSE)
    assert state.length == 13


@pytest.mark.parametrize(
    ("positions", "grads"),
    [
        ("learned", (False, True)),
        ("sinusoidal", (True, False)),
        ("rotary", (False, False)),
        ("rotary", (True, True)),
    ],
)
def test_a_state_gone_on_from_stays_what_it_was(grads, positions, words):
    model, batch = shaken(positions=positions), words(2, 7)
    said = torch.tensor([[3, 9, 4], [5, 1, 10]])
    with torch.set_grad_enabled(grads[0]):
        state = model.start(batch)
        lengths = [cache.length for cache in state.caches]
        first = [model.step(word, state)[0] for word in said.T]
    with torch.set_grad_enabled(grads[1]):
        second = [model.step(word, state)[0] for word in said.T]
    assert (state.length, [cache.length for cache in state.caches]) == (7, lengths)
    for word, once, again in zip(said.T, first, second, strict=True):
        ids = torch.cat([batch.inputs, word.unsqueeze(1)], dim=1)
        expected = model(Words(ids, ids, ids >= 0))[:, -1]
        assert_close(once, expected, **CLOSE)
        assert_close(again, expected, **CLOSE)


def test_a_prompt_padded_on_the_right_is_refused(words):
    model, batch = shaken(), words(2, 5)
    mask = torch.arange(5) < torch.tensor([[5], [3]])
    with pytest.raises(ValueError, match="padding stands on the left of a prompt"):
        model.start(Words(batch.inputs, batch.targets, mask))
    with pytest.raises(ValueError, match="documents are packed in this batch"):
        model.start(Words(batch.inputs, batch.targets, batch.mask, batch.inputs))


def test_padding_is_never_looked_at():
    model = shaken()
    with watch(model) as seen, torch.no_grad():
        state = model.start(Words.prompts([[3, 1, 4, 1], [6]]))
        model.step(torch.tensor([1, 2]), state)
    for looked in seen["layers.1.attention"]:
        assert not looked.weights[1, ..., :3].any()
    assert_close(looked.weights.sum(dim=-1), torch.ones(2, 3, 1))


@torch.no_grad()
def test_all_layers_of_a_step_share_one_written_mask():
    model = shaken()
    state = model.start(Words.prompts([[3, 1, 4, 1], [6]]))
    with watch(model) as seen:
        model.step(torch.tensor([1, 2]), state)
    masks = [calls[0].mask for calls in seen.values()]
    assert len(masks) == 2 and masks[0] is masks[1]
    assert masks[0].allowed.tolist() == [[5 * [True]], [[False] * 3 + [True] * 2]]


def test_dropout_acts_in_training_only(words):
    model, batch = GPT2(GPT2Config(**SMALL, dropout=0.5)), words(2, 7)
    assert not torch.equal(model(batch), model(batch))
    model.eval()
    assert torch.equal(model(batch), model(batch))
    quiet = GPT2(GPT2Config(**SMALL, attention_dropout=0.0))
    assert quiet.layers[0].attention.attention.dropout == 0.0
