import math

import pytest
import torch
from torch.testing import assert_close

from regard.attention import watch
from regard.data.batches import Pairs
from regard.decoding import DecodingConfig, decode
from regard.models import build
from regard.models.transformer import Transformer, TransformerConfig

SMALL = {
    "vocabulary_size": 11,
    "model_size": 12,
    "heads": 3,
    "layers": 2,
    "feedforward_size": 7,
    "longest": 19,
}
CLOSE = {"atol": 2e-6, "rtol": 2e-5}
START, END = 0, 1
# Every setting that changes how a model reads comes once or more, and no two are crossed.
KINDS = {
    "base": {},
    "pre-norm": {"norm": "pre", "activation": "gelu"},
    "learned": {"positions": "learned", "tied": False},
    "rotary": {"positions": "rotary", "norm": "pre"},
    "two vocabularies": {"source_vocabulary_size": 13, "shared": False, "encoder_layers": 1},
}


def shaken(**settings):
    """A model whose weights are all large enough to matter, its norms and biases too."""
    model = Transformer(TransformerConfig(**SMALL, **settings)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.3)
    return model


@pytest.fixture(params=KINDS)
def model(request):
    return shaken(**KINDS[request.param])


def pairs(sources, targets):
    """Random pairs of these lengths, padded on the right; the padding holds words, too."""
    source, words = (torch.randint(2, 11, (len(n), max(n))) for n in (sources, targets))
    masks = [torch.arange(max(n)) < torch.tensor(n)[:, None] for n in (sources, targets)]
    said = torch.cat([torch.full((len(targets), 1), START), words[:, :-1]], dim=1)
    return Pairs(source, masks[0], said, words, masks[1])


def stepped(model, batch):
    state, said = model.start(batch), []
    for ids in batch.target_input.unbind(dim=1):
        logits, state = model.step(ids, state)
        said.append(logits)
    return torch.stack(said, dim=1)


@torch.no_grad()
def test_word_by_word_is_the_same_as_all_at_once(model):
    batch = pairs([7, 3, 1], [5, 5, 2])
    assert_close(stepped(model, batch), model(batch), **CLOSE)


@torch.no_grad()
def test_a_pair_is_read_alike_alone_and_beside_longer_ones(model):
    batch = pairs([7, 3, 5], [2, 5, 3])
    together = model(batch)
    for row, (source, target) in enumerate([(7, 2), (3, 5), (5, 3)]):
        part = batch.pick(torch.tensor([row]))
        alone = Pairs(
            part.source[:, :source],
            part.source_mask[:, :source],
            part.target_input[:, :target],
            part.target_output[:, :target],
            part.target_mask[:, :target],
        )
        assert_close(together[row, :target], model(alone)[0], **CLOSE)


def test_a_later_word_changes_nothing_that_was_said_before(model):
    batch = pairs([7, 3], [5, 5])
    before = model(batch)
    batch.target_input[:, 3] = (batch.target_input[:, 3] + 1) % 11
    after = model(batch)
    assert_close(after[:, :3], before[:, :3])
    assert (after[:, 3] - before[:, 3]).abs().max() > 1e-3


def test_every_word_of_the_source_matters_to_every_word_of_the_target(model):
    batch = pairs([7, 7], [5, 5])
    before = model(batch)
    for position in (0, 6):
        source = batch.source.clone()
        source[:, position] = (source[:, position] + 1) % 11
        after = model(Pairs(source, *list(vars(batch).values())[1:]))
        assert (after - before).abs().amax(dim=-1).min() > 1e-4


@torch.no_grad()
def test_picked_rows_go_on_as_if_they_had_always_been_alone(model):
    batch = pairs([7, 3, 5], [4, 4, 4])
    for chosen in ([2, 0, 0, 1], [0, 1, 2], [2, 0, 1], [1]):
        rows = torch.tensor(chosen)
        state = model.start(batch)
        for ids in batch.target_input[:, :2].unbind(dim=1):
            _, state = model.step(ids, state)
        picked, fresh = state.pick(rows), model.start(batch.pick(rows))
        for ids in batch.target_input[rows, :2].unbind(dim=1):
            _, fresh = model.step(ids, fresh)
        ids = torch.arange(len(rows))
        assert_close(model.step(ids, picked)[0], model.step(ids, fresh)[0], **CLOSE)


@torch.no_grad()
def test_a_state_can_be_gone_on_from_more_than_once(model):
    _, state = model.step(torch.tensor([0, 0]), model.start(pairs([7, 3], [5, 5])))
    first, _ = model.step(torch.tensor([3, 4]), state)
    model.step(torch.tensor([5, 6]), state)
    assert_close(model.step(torch.tensor([3, 4]), state)[0], first)


@torch.no_grad()
def test_a_beam_that_stays_within_its_sentences_copies_no_memory():
    state = shaken().start(pairs([7, 3], [5, 5])).pick(torch.tensor([0, 0, 1, 1]))
    traded = state.pick(torch.tensor([1, 1, 3, 2]))
    assert traded.memories is state.memories and traded.mask is state.mask
    ended = state.pick(torch.tensor([0, 1]))
    assert [len(memory.values) for memory in ended.memories] == [2, 2]


@torch.no_grad()
def test_the_source_is_projected_once_a_sentence_however_much_is_said(monkeypatch):
    model, calls = shaken(), []
    for layer in model.decoder.layers:
        attention = layer.cross_attention
        project = attention._project_memory
        monkeypatch.setattr(
            attention,
            "_project_memory",
            lambda *given, project=project: calls.append(1) or project(*given),
        )
    batch = pairs([7, 3], [5, 5])
    settings = DecodingConfig(method="beam", beam=3, longest=6)
    decode(model, batch, torch.tensor([START, START]), settings, end=END)
    assert len(calls) == 2  # once for each layer


def test_every_parameter_learns(model):
    model(pairs([7, 3], [5, 5])).logsumexp(dim=-1).sum().backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None and weight.grad.abs().max() > 0, name


def test_a_detached_state_has_no_history():
    model, batch = shaken(), pairs([7, 3], [5, 5])
    _, state = model.step(batch.target_input[:, 0], model.start(batch))
    state = state.detach()
    for _ in range(2):  # torch refuses to go back through the same history twice
        model.step(batch.target_input[:, 1], state)[0].sum().backward()


def test_every_look_has_its_path_and_padding_is_never_seen():
    model = shaken()
    with watch(model) as seen, torch.no_grad():
        model(pairs([7, 3], [5, 5]))
    parts = ["encoder.layers.{}.attention", "decoder.layers.{}.attention"]
    parts.append("decoder.layers.{}.cross_attention")
    assert set(seen) == {part.format(layer) for part in parts for layer in range(2)}
    shapes = {part: seen[part.format(1)][0].weights.shape for part in parts}
    assert list(shapes.values()) == [(2, 3, 7, 7), (2, 3, 5, 5), (2, 3, 5, 7)]
    for part in (parts[0], parts[2]):
        weights = seen[part.format(0)][0].weights
        assert not weights[1, ..., 3:].any()
        assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))
    assert not seen[parts[1].format(0)][0].weights.triu(1).any()


def test_one_table_serves_source_target_and_output_unless_told_otherwise():
    model = build("transformer", **SMALL)
    table = model.output.weight
    assert model.encoder.words.embedding.weight is table
    assert model.decoder.words.embedding.weight is table
    apart = build("transformer", **SMALL, tied=False, shared=False)
    assert len([p for p in apart.parameters() if tuple(p.shape) == (11, 12)]) == 3
    with pytest.raises(ValueError, match=r"source_vocabulary_size \(13\) must be vocabulary_size"):
        TransformerConfig(**SMALL, source_vocabulary_size=13)


def test_words_are_scaled_so_that_waves_do_not_drown_them():
    words = shaken().encoder.words
    ids = torch.tensor([[3, 5, 7, 2]])
    waves = [
        turn(3 / 10_000 ** (2 * pair / 12)) for pair in range(6) for turn in (math.sin, math.cos)
    ]
    expected = words.embedding.weight[2] * math.sqrt(12) + torch.tensor(waves)
    assert_close(words(ids)[0, 3], expected)
    assert_close(words(ids[:, 3:], 3)[0, 0], expected)


def count(**settings):
    with torch.device("meta"):
        model = build("transformer", vocabulary_size=37_000, **settings)
    return sum(weight.numel() for weight in model.parameters())


def test_the_base_model_has_the_weights_of_table_3():
    """65 million in the paper's round numbers; written out for its 37,000 shared units:

    a table of 37,000 × 512; of attention 4 × (512² + 512), twice in the decoder; the feed-forward
    network 512 × 2048 + 2048 + 2048 × 512 + 512; a norm 2 × 512, two in the encoder's layers and
    three in the decoder's.
    """
    attention, feedforward, norm = 1_050_624, 2_099_712, 1_024
    encoder = 6 * (attention + feedforward + 2 * norm)
    decoder = 6 * (2 * attention + feedforward + 3 * norm)
    assert count() == 18_944_000 + encoder + decoder == 63_082_496
    assert count(preset="big") == 214_245_376  # 213 million in table 3
    assert count(norm="pre") == 63_082_496 + 2 * norm


def test_dropout_acts_in_training_only():
    batch = pairs([7, 3], [5, 5])
    for name in ("dropout", "attention_dropout", "feedforward_dropout"):
        model = Transformer(TransformerConfig(**SMALL, **{"dropout": 0.0, name: 0.5}))
        assert not torch.equal(model(batch), model(batch)), name
        model.eval()
        assert torch.equal(model(batch), model(batch))


def test_learned_positions_end_and_others_go_on():
    with pytest.raises(ValueError, match=r"positions 0 … 19 were asked for, but .+ 19 \(longest\)"):
        shaken(positions="learned")(pairs([20], [3]))
    for positions in ("sinusoidal", "rotary"):
        assert shaken(positions=positions)(pairs([20], [23])).shape == (1, 23, 11)


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"heads": 5}, r"model_size \(12\) must be a multiple of heads \(5\)"),
        ({"norm": "middle"}, r"norm \('middle'\) must be one of pre, post"),
        ({"positions": "none"}, r"positions \('none'\) must be one of learned, sinusoidal, rotary"),
        ({"activation": "snake"}, r"activation \('snake'\) must be one of relu, gelu"),
        ({"encoder_layers": 0}, r"encoder_layers \(0\) must be at least 1"),
        ({"attention_dropout": 1.0}, r"attention_dropout \(1.0\) must be at least 0 and below 1"),
    ],
)
def test_what_cannot_work_is_refused_by_name_and_value(settings, wanted):
    with pytest.raises(ValueError, match=wanted):
        TransformerConfig(**{**SMALL, **settings})
